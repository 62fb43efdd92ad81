package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// WireAnthropic is Anthropic's Messages API.
const WireAnthropic Wire = "anthropic"

// anthropicWire implements [wire]. Its rules are those of the public
// reference: roles alternate, a conversation ends with the user, each tool use
// is answered in the next message before anything else, text is never blank,
// thinking comes back with the signature it was given.
type anthropicWire struct{}

func (anthropicWire) matches(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages")
}

func (anthropicWire) credential(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (anthropicWire) contentType() string { return "text/event-stream; charset=utf-8" }

// anthropicBody is a request as it reads.
type anthropicBody struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	System    anthropicContent   `json:"system"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []json.RawMessage  `json:"tools"`
	Stream    bool               `json:"stream"`
	Thinking  struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content anthropicContent `json:"content"`
}

// anthropicContent is a list of blocks, or a string that stands for one.
type anthropicContent []anthropicBlock

type anthropicBlock struct {
	Type         string           `json:"type"`
	Text         string           `json:"text"`
	Thinking     string           `json:"thinking"`
	Signature    string           `json:"signature"`
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Input        json.RawMessage  `json:"input"`
	ToolUseID    string           `json:"tool_use_id"`
	Content      anthropicContent `json:"content"`
	CacheControl json.RawMessage  `json:"cache_control"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *anthropicContent) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = anthropicContent{{Type: "text", Text: text}}
		return nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(data, &blocks); err != nil {
		return err
	}
	*c = blocks
	return nil
}

func (w anthropicWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: WireAnthropic, Usage: true}
	var b anthropicBody
	if err := json.Unmarshal(body, &b); err != nil {
		return request, broken("The request body is not valid JSON: %v", err)
	}
	request.Model, request.MaxOutput, request.Stream = b.Model, b.MaxTokens, b.Stream
	for _, block := range b.System {
		request.System += block.Text
	}
	for _, definition := range b.Tools {
		request.Tools = append(request.Tools, namedTool(definition, "name"))
	}
	for _, m := range b.Messages {
		request.Messages = append(request.Messages, m.neutral())
	}
	if r.Header.Get("Anthropic-Version") == "" {
		return request, broken("anthropic-version: header is required")
	}
	return request, b.check()
}

func (m anthropicMessage) neutral() Message {
	n := Message{Role: Role(m.Role)}
	for _, block := range m.Content {
		switch block.Type {
		case "text":
			n.Text += block.Text
		case "thinking":
			n.Reasoning += block.Thinking
		case "tool_use":
			n.Calls = append(n.Calls, Call{ID: block.ID, Name: block.Name, Input: string(block.Input)})
		case "tool_result":
			output := ""
			for _, part := range block.Content {
				output += part.Text
			}
			n.Results = append(n.Results, Result{CallID: block.ToolUseID, Output: output})
		}
	}
	if len(n.Results) > 0 && n.Text == "" {
		n.Role = RoleTool
	}
	return n
}

// check judges a request by the rules of the wire.
func (b anthropicBody) check() *problem {
	switch {
	case b.MaxTokens <= 0:
		return broken("max_tokens: Field required")
	case len(b.Messages) == 0:
		return broken("messages: at least one message is required")
	case b.Messages[0].Role != "user":
		return broken("messages: first message must use the \"user\" role")
	case b.Messages[len(b.Messages)-1].Role != "user":
		return broken("This model does not support assistant message prefill. The conversation must end with a user message.")
	case b.Thinking.Type == "enabled" && b.Thinking.Budget >= b.MaxTokens:
		return broken("`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	if n := b.breakpoints(); n > 4 {
		return broken("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	var open []string
	for i, m := range b.Messages {
		if i > 0 && m.Role == b.Messages[i-1].Role {
			return broken("messages: roles must alternate between \"user\" and \"assistant\", but found multiple %q roles in a row", m.Role)
		}
		var p *problem
		if open, p = b.checkMessage(i, open); p != nil {
			return p
		}
	}
	return b.checkThinking()
}

// checkMessage judges one message. open are the tool uses of the message
// before; it returns those of this one.
func (b anthropicBody) checkMessage(i int, open []string) ([]string, *problem) {
	m := b.Messages[i]
	at := fmt.Sprintf("messages.%d", i)
	if m.Role != "user" && m.Role != "assistant" {
		return nil, broken("%s: unexpected role %q", at, m.Role)
	}
	if len(m.Content) == 0 {
		return nil, broken("%s: all messages must have non-empty content", at)
	}
	asked := make(map[string]bool, len(open))
	for _, id := range open {
		asked[id] = true
	}
	var uses []string
	for j, block := range m.Content {
		place := fmt.Sprintf("%s.content.%d", at, j)
		switch {
		case block.Type == "text" && strings.TrimSpace(block.Text) == "":
			return nil, broken("messages: text content blocks must be non-empty")
		case block.Type == "tool_use" && m.Role == "assistant":
			if len(b.Tools) == 0 {
				return nil, broken("Requests which include `tool_use` or `tool_result` blocks must define tools")
			}
			if !isObject(block.Input) {
				return nil, broken("%s.tool_use.input: Input should be a valid dictionary", place)
			}
			uses = append(uses, block.ID)
		case block.Type == "tool_result" && m.Role == "user":
			if !asked[block.ToolUseID] {
				return nil, broken("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", place, block.ToolUseID)
			}
			if j > 0 && m.Content[j-1].Type != "tool_result" {
				return nil, broken("%s: `tool_result` blocks must come first in the message", place)
			}
			delete(asked, block.ToolUseID)
		case block.Type == "tool_use" || block.Type == "tool_result":
			return nil, broken("%s: %s blocks are not allowed in %s messages", place, block.Type, m.Role)
		case block.Type == "thinking" && block.Signature != signature(block.Thinking):
			return nil, broken("%s: Invalid `signature` in `thinking` block", place)
		}
	}
	if len(asked) > 0 {
		return nil, broken("%s: `tool_use` ids were found without `tool_result` blocks immediately after. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at)
	}
	return uses, firstDuplicate(uses, at)
}

// checkThinking demands the thinking of a tool use back while its turn runs.
func (b anthropicBody) checkThinking() *problem {
	n := len(b.Messages)
	if b.Thinking.Type != "enabled" || n < 2 || b.Messages[n-1].Content[0].Type != "tool_result" {
		return nil
	}
	first := b.Messages[n-2].Content[0].Type
	if first != "thinking" && first != "redacted_thinking" {
		return broken("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", n-2, first)
	}
	return nil
}

func (b anthropicBody) breakpoints() int {
	n := 0
	count := func(c anthropicContent) {
		for _, block := range c {
			if len(block.CacheControl) > 0 {
				n++
			}
		}
	}
	count(b.System)
	for _, m := range b.Messages {
		count(m.Content)
	}
	if len(b.CacheControl) > 0 {
		n++
	}
	return n
}

func (anthropicWire) reject(p problem) rejection {
	status, kind, message := anthropicProblem(p)
	return rejection{status: status, body: mustJSON(map[string]any{
		"type": "error", "error": map[string]string{"type": kind, "message": message}, "request_id": "req_simulated",
	})}
}

func anthropicProblem(p problem) (status int, kind, message string) {
	switch p.kind {
	case problemRule:
		return http.StatusBadRequest, "invalid_request_error", p.message
	case problemWindow:
		if p.input > p.limit {
			return http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", p.input, p.limit)
		}
		return http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", p.input, p.output, p.limit)
	case problemOutput:
		return http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("max_tokens: %d > %d, which is the maximum allowed number of output tokens for this model", p.output, p.limit)
	case problemNoKey, problemWrongKey:
		return http.StatusUnauthorized, "authentication_error", "invalid x-api-key"
	}
	switch p.status {
	case http.StatusTooManyRequests:
		return p.status, "rate_limit_error", "This request would exceed your rate limit."
	case http.StatusNotFound:
		return p.status, "not_found_error", "model not found"
	case http.StatusRequestEntityTooLarge:
		return p.status, "request_too_large", "Request exceeds the maximum size"
	case 529:
		return p.status, "overloaded_error", "Overloaded"
	}
	return p.status, "api_error", "Internal server error"
}

func (anthropicWire) failure(p problem) event {
	_, kind, message := anthropicProblem(p)
	return anthropicEvent("error", map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
}

func anthropicEvent(name string, v any) event {
	return event{data: []byte("event: " + name + "\ndata: " + mustJSON(v) + "\n\n")}
}

func (anthropicWire) events(a answer) []event {
	s := anthropicStream{size: a.reply.ChunkBytes}
	var u Usage
	if a.usage != nil {
		u = *a.usage
	}
	s.add("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", a.request.Number), "type": "message", "role": "assistant", "model": a.request.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]int{"input_tokens": u.Input - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0, "output_tokens": min(u.Output, 1)},
	}})
	s.add("ping", map[string]any{})
	if a.reply.Reasoning != "" {
		s.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, a.reply.Reasoning, func(piece string) map[string]any {
			return map[string]any{"type": "thinking_delta", "thinking": piece}
		}, map[string]any{"type": "signature_delta", "signature": signature(a.reply.Reasoning)})
	}
	if a.reply.Text != "" {
		s.block(map[string]any{"type": "text", "text": ""}, a.reply.Text, func(piece string) map[string]any {
			return map[string]any{"type": "text_delta", "text": piece}
		}, nil)
	}
	for _, call := range a.reply.Calls {
		s.block(map[string]any{"type": "tool_use", "id": call.ID, "name": call.Name, "input": map[string]any{}}, call.Input, func(piece string) map[string]any {
			return map[string]any{"type": "input_json_delta", "partial_json": piece}
		}, nil)
	}
	s.part = eventEnd
	s.add("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": anthropicStop(a.reply.Stop), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": u.Output, "output_tokens_details": map[string]int{"thinking_tokens": u.Reasoning}},
	})
	s.add("message_stop", map[string]any{})
	return s.events
}

func anthropicStop(s Stop) string {
	switch s {
	case StopEnd:
		return "end_turn"
	case StopToolCalls:
		return "tool_use"
	case StopLength:
		return "max_tokens"
	case StopContentFilter:
		return "refusal"
	case StopContextWindow:
		return "model_context_window_exceeded"
	}
	return string(s)
}

// anthropicStream collects the events of an answer.
type anthropicStream struct {
	events []event
	size   int
	index  int
	part   eventPart
}

func (s *anthropicStream) add(name string, fields map[string]any) {
	fields["type"] = name
	e := anthropicEvent(name, fields)
	e.part = s.part
	s.events = append(s.events, e)
}

// block adds one content block in pieces; last is a delta after them.
func (s *anthropicStream) block(start map[string]any, text string, delta func(string) map[string]any, last map[string]any) {
	s.add("content_block_start", map[string]any{"index": s.index, "content_block": start})
	for _, piece := range pieces(text, s.size) {
		s.add("content_block_delta", map[string]any{"index": s.index, "delta": delta(piece)})
	}
	if last != nil {
		s.add("content_block_delta", map[string]any{"index": s.index, "delta": last})
	}
	s.add("content_block_stop", map[string]any{"index": s.index})
	s.index++
}
