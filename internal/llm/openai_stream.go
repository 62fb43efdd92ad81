package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"keen/internal/llm/apierror"
)

// chatReader reads the stream of one answer.
type chatReader struct {
	provider string
	emit     func(delta)

	text      strings.Builder
	reasoning strings.Builder
	calls     chatCalls
	finish    string
	refused   bool
	// usage is nil until the server reported some.
	usage *Usage
	// events counts the events seen, done is set by the end marker.
	events int
	done   bool
}

// read reads a response to the end of its answer. It returns an error unless
// the answer is whole.
func (r *chatReader) read(response *http.Response) error {
	head := &headRecorder{limit: maxErrorBody}
	// Some servers leave out the blank line after the last event, without
	// which the decoder drops it.
	body := io.MultiReader(io.TeeReader(response.Body, head), strings.NewReader("\n\n"))
	events := ssestream.NewDecoder(&http.Response{Header: response.Header, Body: struct {
		io.Reader
		io.Closer
	}{body, response.Body}})
	for !r.done && events.Next() {
		if err := r.event(events.Event()); err != nil {
			return err
		}
	}
	if err := events.Err(); err != nil && r.finish == "" {
		return fmt.Errorf("read the answer: %w", err)
	}
	if r.events == 0 {
		return r.noStream(response, head.data)
	}
	return r.complete()
}

// event takes in one event.
func (r *chatReader) event(e ssestream.Event) error {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		return nil
	}
	r.events++
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		r.done = true
		return nil
	}
	var chunk openai.ChatCompletionChunk
	err := json.Unmarshal(data, &chunk)
	switch {
	case e.Type == "error" || err == nil && isChatFailure(chunk):
		return &ssestream.StreamError{Message: "the server reported an error inside the answer", Event: e}
	case err != nil:
		return r.broken("the server sent a chunk that is no valid JSON", err)
	}
	if chunk.JSON.Usage.Valid() {
		r.usage = chatUsage(chunk.Usage)
	}
	for _, choice := range chunk.Choices {
		if choice.Index == 0 {
			r.choice(choice)
		}
	}
	return nil
}

func (r *chatReader) choice(choice openai.ChatCompletionChunkChoice) {
	d := choice.Delta
	thought := extraString(d.JSON.ExtraFields, "reasoning_content")
	if thought == "" {
		thought = extraString(d.JSON.ExtraFields, "reasoning")
	}
	said := d.Content + d.Refusal
	r.refused = r.refused || d.Refusal != ""
	r.reasoning.WriteString(thought)
	r.text.WriteString(said)
	if thought != "" || said != "" {
		r.emit(delta{Text: said, Reasoning: thought})
	}
	for _, k := range d.ToolCalls {
		f := chatFragment{index: k.Index, id: k.ID, name: k.Function.Name, arguments: k.Function.Arguments}
		if !k.JSON.Index.Valid() {
			f.index = noIndex
		}
		if raw := k.Function.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") {
			f.arguments = raw // An object where its text belongs.
		}
		r.calls.add(f)
	}
	if raw := d.JSON.FunctionCall.Raw(); raw != "" && raw != "null" {
		var legacy struct{ Name, Arguments string }
		if err := json.Unmarshal([]byte(raw), &legacy); err == nil {
			r.calls.add(chatFragment{index: legacyIndex, name: legacy.Name, arguments: legacy.Arguments})
		}
	}
	if choice.FinishReason != "" && choice.FinishReason != "null" {
		r.finish = choice.FinishReason
	}
}

// complete returns an error unless the answer has a proper end: a finish
// reason, or, on servers that give none, both a usage report and the end
// marker after a whole answer. A stream that was cut has neither.
func (r *chatReader) complete() error {
	switch r.finish {
	case "":
		said := r.text.Len() > 0 || len(r.calls.list) > 0
		if !r.done || r.usage == nil || !said || !r.calls.complete() {
			return r.broken("the answer ended without a finish reason", nil)
		}
	case "error", "network_error", "insufficient_system_resource", "abort":
		return r.broken(fmt.Sprintf("the server gave up on the answer (%s)", r.finish), nil)
	}
	return nil
}

// stop says why the model stopped.
func (r *chatReader) stop() StopReason {
	switch r.finish {
	case "length", "max_tokens":
		return StopLength
	case "content_filter", "refusal", "safety", "sensitive":
		return StopRefusal
	}
	switch {
	case apierror.IsOverflowStop(r.finish):
		return StopContextWindow
	case r.refused:
		return StopRefusal
	case len(r.calls.list) > 0:
		// Many servers say "stop" here.
		return StopToolCalls
	}
	switch r.finish {
	case "", "stop", "eos", "end_turn", "tool_calls", "function_call":
		return StopEnd
	}
	return StopUnknown
}

// noStream says what a successful response without any event means: usually
// an error in disguise, or a base URL that is not the one of an API.
func (r *chatReader) noStream(response *http.Response, head []byte) error {
	head = bytes.TrimSpace(head)
	failure := &apierror.Error{Kind: apierror.KindOther, Provider: r.provider, Status: response.StatusCode}
	var completion struct{ Choices []json.RawMessage }
	switch {
	case len(head) == 0 || startsEvent(head):
		return r.broken("the server ended the answer before it began", nil)
	case head[0] == '<' || strings.Contains(response.Header.Get("Content-Type"), "text/html"):
		failure.Message = "the server sent a web page instead of an answer; check the base URL, which usually ends in /v1"
		return failure
	case json.Unmarshal(head, &completion) == nil && len(completion.Choices) > 0:
		failure.Message = "the server sent the answer in one piece; Keen needs one that can stream"
		return failure
	}
	return &responseError{status: response.StatusCode, header: response.Header, body: string(head)}
}

// startsEvent reports whether a body is an event stream, though one without a
// whole event.
func startsEvent(head []byte) bool {
	field, _, found := bytes.Cut(head, []byte(":"))
	switch string(field) {
	case "", "data", "event", "id", "retry":
		return found
	}
	return false
}

// broken is an error that may not happen again.
func (r *chatReader) broken(message string, err error) error {
	return &apierror.Error{Kind: apierror.KindTransient, Provider: r.provider, Message: message, Err: err}
}

// isChatFailure reports whether a chunk carries an error. Servers send one under
// the key "error", which others always send as null, or instead of a chunk.
func isChatFailure(chunk openai.ChatCompletionChunk) bool {
	fields := chunk.JSON.ExtraFields
	if isSet(fields, "error") {
		return true
	}
	if chunk.JSON.Choices.Raw() != "" || chunk.JSON.Usage.Raw() != "" {
		return false
	}
	return isSet(fields, "message") || isSet(fields, "error_message") || isSet(fields, "detail") || isSet(fields, "errors")
}

func isSet(fields map[string]respjson.Field, key string) bool {
	field, ok := fields[key]
	if !ok {
		return false
	}
	switch strings.TrimSpace(field.Raw()) {
	case "", "null", `""`, "{}", "[]", "false":
		return false
	}
	return true
}

// extraString returns a text field that the SDK does not know.
func extraString(fields map[string]respjson.Field, key string) string {
	field, ok := fields[key]
	if !ok {
		return ""
	}
	var text string
	if err := json.Unmarshal([]byte(field.Raw()), &text); err != nil {
		return "" // Of another type, so it is not the field that is meant.
	}
	return text
}

// chatUsage normalises a usage report; one without a number is none.
func chatUsage(u openai.CompletionUsage) *Usage {
	usage := Usage{
		InputTokens:     int(u.PromptTokens),
		OutputTokens:    int(u.CompletionTokens),
		ReasoningTokens: int(u.CompletionTokensDetails.ReasoningTokens),
		CacheReadTokens: int(u.PromptTokensDetails.CachedTokens),
	}
	if usage == (Usage{}) {
		return nil
	}
	if usage.CacheReadTokens == 0 {
		// DeepSeek's word for it.
		_ = json.Unmarshal([]byte(u.JSON.ExtraFields["prompt_cache_hit_tokens"].Raw()), &usage.CacheReadTokens)
	}
	if usage.ReasoningTokens > 0 && int(u.TotalTokens) == usage.InputTokens+usage.OutputTokens+usage.ReasoningTokens {
		usage.OutputTokens += usage.ReasoningTokens // xAI counts it apart.
	}
	return &usage
}
