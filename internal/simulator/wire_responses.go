package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// WireResponses is OpenAI's Responses API, WireCodex the same behind ChatGPT's
// door for Codex.
const (
	WireResponses Wire = "responses"
	WireCodex     Wire = "codex"
)

// responsesWire implements [wire]. Every function call has one output and
// every output its call; reasoning comes back as it was given, directly before
// what it led to. Codex demands its headers, instructions and store: false,
// and takes no output limit.
type responsesWire struct{ codex bool }

func (w responsesWire) matches(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses") && strings.Contains(r.URL.Path, "/codex/") == w.codex
}

func (responsesWire) credential(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (responsesWire) contentType() string { return "text/event-stream; charset=utf-8" }

func (w responsesWire) name() Wire {
	if w.codex {
		return WireCodex
	}
	return WireResponses
}

// responsesBody is a request as it reads.
type responsesBody struct {
	Model           string            `json:"model"`
	Instructions    *string           `json:"instructions"`
	Input           json.RawMessage   `json:"input"`
	Tools           []json.RawMessage `json:"tools"`
	MaxOutputTokens *int              `json:"max_output_tokens"`
	Store           *bool             `json:"store"`
	Stream          bool              `json:"stream"`
	Include         []string          `json:"include"`
}

type responsesItem struct {
	Type             string           `json:"type"`
	Role             string           `json:"role"`
	Content          anthropicContent `json:"content"`
	ID               string           `json:"id"`
	CallID           string           `json:"call_id"`
	Name             string           `json:"name"`
	Arguments        string           `json:"arguments"`
	Output           string           `json:"output"`
	EncryptedContent string           `json:"encrypted_content"`
	Summary          []anthropicBlock `json:"summary"`
}

func (w responsesWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: w.name(), Usage: true}
	var b responsesBody
	if err := json.Unmarshal(body, &b); err != nil {
		return request, broken("We could not parse the JSON body of your request: %v", err)
	}
	request.Model, request.Stream = b.Model, b.Stream
	if b.Instructions != nil {
		request.System = *b.Instructions
	}
	if b.MaxOutputTokens != nil {
		request.MaxOutput = *b.MaxOutputTokens
	}
	for _, definition := range b.Tools {
		request.Tools = append(request.Tools, namedTool(definition, "name"))
	}
	var text string
	var items []responsesItem
	switch {
	case json.Unmarshal(b.Input, &text) == nil:
		items = []responsesItem{{Type: "message", Role: "user", Content: anthropicContent{{Type: "input_text", Text: text}}}}
	case json.Unmarshal(b.Input, &items) != nil:
		return request, broken("Invalid type for 'input': expected a string or a list of items")
	}
	request.Messages = responsesMessages(items)
	if p := w.checkBody(r, b); p != nil {
		return request, p
	}
	return request, checkItems(items)
}

// responsesMessages gathers items into messages: what the assistant says and
// calls in a row is one.
func responsesMessages(items []responsesItem) []Message {
	var messages []Message
	last := func(role Role) *Message {
		if n := len(messages); n == 0 || messages[n-1].Role != role {
			messages = append(messages, Message{Role: role})
		}
		return &messages[len(messages)-1]
	}
	for _, item := range items {
		switch item.Type {
		case "message", "":
			text := ""
			for _, part := range item.Content {
				text += part.Text
			}
			if item.Role == string(RoleUser) {
				messages = append(messages, Message{Role: RoleUser, Text: text})
				continue
			}
			last(Role(item.Role)).Text += text
		case "reasoning":
			for _, s := range item.Summary {
				last(RoleAssistant).Reasoning += s.Text
			}
			last(RoleAssistant).Reasoning += item.EncryptedContent
		case "function_call":
			m := last(RoleAssistant)
			m.Calls = append(m.Calls, Call{ID: item.CallID, Name: item.Name, Input: item.Arguments})
		case "function_call_output":
			m := last(RoleTool)
			m.Results = append(m.Results, Result{CallID: item.CallID, Output: item.Output})
		}
	}
	return messages
}

// checkBody judges what a request says beside its items.
func (w responsesWire) checkBody(r *http.Request, b responsesBody) *problem {
	for _, tool := range b.Tools {
		var t struct {
			Type       string          `json:"type"`
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal(tool, &t) != nil || t.Type != "function" || t.Name == "" || !isObject(t.Parameters) {
			return broken("Invalid value in 'tools': a function needs a name and parameters")
		}
	}
	if !w.codex {
		return nil
	}
	switch {
	case b.Instructions == nil || *b.Instructions == "":
		return broken("Instructions are required")
	case b.Store == nil || *b.Store:
		return broken("Store must be set to false")
	case !b.Stream:
		return broken("Stream must be set to true")
	case b.MaxOutputTokens != nil:
		return broken("Unsupported parameter: max_output_tokens")
	case r.Header.Get("Chatgpt-Account-Id") == "" || r.Header.Get("Originator") == "" || r.Header.Get("Openai-Beta") == "":
		return broken("Missing headers: chatgpt-account-id, originator and OpenAI-Beta are required")
	}
	return nil
}

// checkItems judges the conversation.
func checkItems(items []responsesItem) *problem {
	open := make(map[string]bool)
	known := make(map[string]bool)
	for i, item := range items {
		at := fmt.Sprintf("input[%d]", i)
		switch item.Type {
		case "message", "":
			if p := checkItemMessage(item, at); p != nil {
				return p
			}
		case "reasoning":
			if p := checkReasoning(items, i); p != nil {
				return p
			}
		case "function_call":
			switch {
			case item.CallID == "" || item.Name == "":
				return broken("Missing required parameter: '%s.call_id' or name.", at)
			case len(item.CallID) > maxCallID:
				return broken("Invalid '%s.call_id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxCallID, len(item.CallID))
			case known[item.CallID]:
				return broken("Duplicate call_id %s.", item.CallID)
			case !isObject(json.RawMessage(item.Arguments)):
				return broken("Invalid '%s.arguments': not a JSON object.", at)
			}
			known[item.CallID], open[item.CallID] = true, true
		case "function_call_output":
			if !open[item.CallID] {
				return broken("No tool call found for function call output with call_id %s.", item.CallID)
			}
			delete(open, item.CallID)
		default:
			return broken("Invalid value: '%s' at %s.type.", item.Type, at)
		}
	}
	for id := range open {
		return broken("No tool output found for function call %s.", id)
	}
	if n := len(items); n == 0 || items[n-1].Type != "function_call_output" && items[n-1].Role != "user" {
		return broken("The input must end with the user or with tool outputs.")
	}
	return nil
}

func checkItemMessage(item responsesItem, at string) *problem {
	switch item.Role {
	case "user", "assistant", "system", "developer":
	default:
		return broken("Invalid value: '%s' at %s.role.", item.Role, at)
	}
	for _, part := range item.Content {
		if part.Text == "" {
			return broken("Invalid '%s.content': empty text.", at)
		}
	}
	return nil
}

func checkReasoning(items []responsesItem, i int) *problem {
	item := items[i]
	summary := ""
	for _, s := range item.Summary {
		summary += s.Text
	}
	switch {
	case item.EncryptedContent != signature(summary):
		return broken("The encrypted content for item %s could not be verified.", item.ID)
	case i+1 == len(items) || items[i+1].Type == "function_call_output" || items[i+1].Role == "user":
		return broken("Item '%s' of type 'reasoning' was provided without its required following item.", item.ID)
	}
	return nil
}

func (w responsesWire) reject(p problem) rejection {
	status, code, message := openaiProblem(p)
	if w.codex && p.kind == problemRule {
		return rejection{status: status, body: mustJSON(map[string]string{"detail": message})}
	}
	return rejection{status: status, body: mustJSON(map[string]any{"error": map[string]any{
		"message": message, "type": openaiType(status), "param": nil, "code": code,
	}})}
}

func openaiProblem(p problem) (status int, code, message string) {
	switch p.kind {
	case problemRule:
		return http.StatusBadRequest, "invalid_request_error", p.message
	case problemWindow:
		return http.StatusBadRequest, "context_length_exceeded", fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.", p.limit, p.input+p.output, p.input, p.output)
	case problemOutput:
		return http.StatusBadRequest, "invalid_value", fmt.Sprintf("max_output_tokens is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", p.output, p.limit, p.output)
	case problemNoKey, problemWrongKey:
		return http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided"
	}
	switch p.status {
	case http.StatusTooManyRequests:
		return p.status, "rate_limit_exceeded", "Rate limit reached for requests"
	case http.StatusNotFound:
		return p.status, "model_not_found", "The model does not exist or you do not have access to it."
	}
	return p.status, "server_error", "The server had an error while processing your request."
}

func openaiType(status int) string {
	if status >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}

func (responsesWire) failure(p problem) event {
	_, code, message := openaiProblem(p)
	return responsesEvent("response.failed", map[string]any{"response": map[string]any{
		"id": "resp_failed", "object": "response", "status": "failed", "error": map[string]string{"code": code, "message": message},
	}})
}

func responsesEvent(name string, fields map[string]any) event {
	fields["type"] = name
	return event{data: []byte("event: " + name + "\ndata: " + mustJSON(fields) + "\n\n")}
}

func (w responsesWire) events(a answer) []event {
	if a.reply.Stop == StopContextWindow {
		// This wire knows no such reason to stop; it fails.
		p := problem{kind: problemWindow, input: a.request.InputTokens, limit: a.request.InputTokens}
		failed := w.failure(p)
		failed.part = eventEnd
		return []event{failed}
	}
	s := responsesStream{size: a.reply.ChunkBytes, id: fmt.Sprintf("resp_%d", a.request.Number)}
	s.add("response.created", map[string]any{"response": map[string]any{"id": s.id, "object": "response", "status": "in_progress", "output": []any{}}})
	if a.reply.Reasoning != "" {
		s.reasoning(a.reply.Reasoning)
	}
	if a.reply.Text != "" {
		s.message(a.reply.Text)
	}
	cut := a.reply.Stop == StopLength
	for i, call := range a.reply.Calls {
		s.call(call, cut && i == len(a.reply.Calls)-1)
	}
	s.end(a)
	return s.events
}

// responsesStream collects the events of an answer.
type responsesStream struct {
	events []event
	size   int
	id     string
	items  []any
	part   eventPart
}

func (s *responsesStream) add(name string, fields map[string]any) {
	fields["sequence_number"] = len(s.events)
	e := responsesEvent(name, fields)
	e.part = s.part
	s.events = append(s.events, e)
}

func (s *responsesStream) open(item map[string]any) {
	s.add("response.output_item.added", map[string]any{"output_index": len(s.items), "item": item})
}

func (s *responsesStream) done(item map[string]any) {
	s.add("response.output_item.done", map[string]any{"output_index": len(s.items), "item": item})
	s.items = append(s.items, item)
}

func (s *responsesStream) reasoning(text string) {
	id := fmt.Sprintf("rs_%s_%d", s.id, len(s.items))
	s.open(map[string]any{"type": "reasoning", "id": id, "summary": []any{}})
	for _, piece := range pieces(text, s.size) {
		s.add("response.reasoning_summary_text.delta", map[string]any{"item_id": id, "output_index": len(s.items), "summary_index": 0, "delta": piece})
	}
	s.done(map[string]any{
		"type": "reasoning", "id": id, "encrypted_content": signature(text),
		"summary": []any{map[string]string{"type": "summary_text", "text": text}},
	})
}

func (s *responsesStream) message(text string) {
	id := fmt.Sprintf("msg_%s_%d", s.id, len(s.items))
	s.open(map[string]any{"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []any{}})
	for _, piece := range pieces(text, s.size) {
		s.add("response.output_text.delta", map[string]any{"item_id": id, "output_index": len(s.items), "content_index": 0, "delta": piece})
	}
	s.done(map[string]any{
		"type": "message", "id": id, "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}},
	})
}

// call adds a call; torn leaves it without its end, as the output limit does.
func (s *responsesStream) call(call Call, torn bool) {
	id := fmt.Sprintf("fc_%s_%d", s.id, len(s.items))
	item := map[string]any{"type": "function_call", "id": id, "call_id": call.ID, "name": call.Name, "arguments": "", "status": "in_progress"}
	s.open(item)
	for _, piece := range pieces(call.Input, s.size) {
		s.add("response.function_call_arguments.delta", map[string]any{"item_id": id, "output_index": len(s.items), "delta": piece})
	}
	if torn {
		return
	}
	s.done(map[string]any{"type": "function_call", "id": id, "call_id": call.ID, "name": call.Name, "arguments": call.Input, "status": "completed"})
}

func (s *responsesStream) end(a answer) {
	s.part = eventEnd
	response := map[string]any{"id": s.id, "object": "response", "status": "completed", "model": a.request.Model, "output": s.items}
	if a.usage != nil {
		response["usage"] = map[string]any{
			"input_tokens": a.usage.Input, "output_tokens": a.usage.Output, "total_tokens": a.usage.Input + a.usage.Output,
			"input_tokens_details":  map[string]int{"cached_tokens": a.usage.Cached},
			"output_tokens_details": map[string]int{"reasoning_tokens": a.usage.Reasoning},
		}
	}
	reason := ""
	switch a.reply.Stop {
	case StopEnd, StopToolCalls:
		s.add("response.completed", map[string]any{"response": response})
		return
	case StopLength:
		reason = "max_output_tokens"
	case StopContentFilter:
		reason = "content_filter"
	default:
		reason = string(a.reply.Stop)
	}
	response["status"], response["incomplete_details"] = "incomplete", map[string]string{"reason": reason}
	s.add("response.incomplete", map[string]any{"response": response})
}
