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

// responsesWire implements [wire]. It streams only, and stores nothing.
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
	Model              string            `json:"model"`
	Instructions       string            `json:"instructions"`
	Input              json.RawMessage   `json:"input"`
	Tools              []json.RawMessage `json:"tools"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Store              *bool             `json:"store"`
	Stream             bool              `json:"stream"`
	Include            []string          `json:"include"`
	PreviousResponseID string            `json:"previous_response_id"`
}

type responsesItem struct {
	Type             string           `json:"type"`
	Role             string           `json:"role"`
	Content          responsesContent `json:"content"`
	ID               string           `json:"id"`
	CallID           string           `json:"call_id"`
	Name             string           `json:"name"`
	Arguments        string           `json:"arguments"`
	Output           responsesContent `json:"output"`
	EncryptedContent string           `json:"encrypted_content"`
	Summary          []responsesPart  `json:"summary"`
}

// kind is the type of an item; messages need not say it.
func (i *responsesItem) kind() string {
	if i.Type == "" {
		return "message"
	}
	return i.Type
}

// summary joins the summary of a reasoning item.
func (i *responsesItem) summary() string { return responsesContent{parts: i.Summary}.text() }

// responsesContent is a text or a list of parts.
type responsesContent struct {
	parts []responsesPart
	// set says that there is content, plain that it is a text.
	set, plain bool
}

type responsesPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *responsesContent) UnmarshalJSON(data []byte) error {
	*c = responsesContent{set: isSet(data)}
	var text string
	if c.set && json.Unmarshal(data, &text) == nil {
		c.parts, c.plain = []responsesPart{{Text: text}}, true
		return nil
	}
	return json.Unmarshal(data, &c.parts)
}

// text joins the parts.
func (c responsesContent) text() string {
	var b strings.Builder
	for _, part := range c.parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

func (w responsesWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: w.name(), Usage: true}
	var b responsesBody
	if err := decodeBody(body, &b); err != nil {
		return request, broken("We could not parse the JSON body of your request: %v", err)
	}
	request.Model, request.Stream, request.System = b.Model, b.Stream, b.Instructions
	if b.MaxOutputTokens != nil {
		request.MaxOutput = max(0, *b.MaxOutputTokens)
	}
	for _, definition := range b.Tools {
		request.Tools = append(request.Tools, namedTool(definition))
	}
	items, p := w.items(b.Input)
	if p != nil {
		return request, p
	}
	request.Messages = responsesMessages(items)
	if p := w.checkBody(r, &b); p != nil {
		return request, p
	}
	return request, w.checkItems(items)
}

// items reads the input: a list of items, or a text that stands for one.
func (w responsesWire) items(input json.RawMessage) ([]responsesItem, *problem) {
	var text string
	var items []responsesItem
	switch {
	case !isSet(input):
		return nil, nil
	case json.Unmarshal(input, &text) == nil && w.codex:
		return nil, ruleProblem("input", "Input must be a list")
	case json.Unmarshal(input, &text) == nil:
		content := responsesContent{parts: []responsesPart{{Text: text}}, set: true, plain: true}
		return []responsesItem{{Role: string(RoleUser), Content: content}}, nil
	}
	if err := json.Unmarshal(input, &items); err != nil {
		return nil, ruleProblem("input", "Invalid type for 'input': expected a string or an array of items: %v", err)
	}
	return items, nil
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
		switch item.kind() {
		case "message":
			if item.Role == string(RoleUser) {
				messages = append(messages, Message{Role: RoleUser, Text: item.Content.text()})
				continue
			}
			last(Role(item.Role)).Text += item.Content.text()
		case "reasoning":
			last(RoleAssistant).Reasoning += item.summary() + item.EncryptedContent
		case "function_call":
			m := last(RoleAssistant)
			m.Calls = append(m.Calls, Call{ID: item.CallID, Name: item.Name, Input: item.Arguments})
		case "function_call_output":
			m := last(RoleTool)
			m.Results = append(m.Results, Result{CallID: item.CallID, Output: item.Output.text()})
		}
	}
	return messages
}

// openaiError is an error in OpenAI's form.
type openaiError struct {
	status              int
	kind, code, message string
	param               *string
}

func (e openaiError) body() string {
	var code any
	if e.code != "" {
		code = e.code
	}
	return mustJSON(map[string]any{"error": map[string]any{"message": e.message, "type": e.kind, "param": e.param, "code": code}})
}

func (w responsesWire) reject(p problem) rejection {
	e := w.problem(p)
	switch {
	case w.codex && p.kind == problemRule:
		return rejection{status: e.status, body: mustJSON(map[string]string{"detail": e.message})}
	case w.codex && p.kind == problemNoKey:
		return rejection{status: e.status, body: mustJSON(map[string]string{"detail": "Unauthorized"})}
	}
	return rejection{status: e.status, body: e.body()}
}

// problem says what is wrong with a request. That it is too large, OpenAI
// itself says without numbers and inside the stream, see failure; the servers
// that offer the same API say it at once, in the words of Chat Completions.
func (w responsesWire) problem(p problem) openaiError {
	e := openaiError{status: http.StatusBadRequest, kind: "invalid_request_error"}
	switch p.kind {
	case problemRule:
		e.message, e.code = p.message, responsesCode(p.message)
		if p.status != 0 {
			e.status = p.status
		}
		if p.param != "" {
			e.param = &p.param
		}
	case problemWindow:
		e.code, e.param = "context_length_exceeded", ptr("input")
		e.message = fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.", p.limit, p.input+p.output, p.input, p.output)
	case problemOutput:
		e.code, e.param = "integer_above_max_value", ptr("max_output_tokens")
		e.message = fmt.Sprintf("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= %d, but got %d instead.", p.limit, p.output)
	case problemNoKey:
		e.status = http.StatusUnauthorized
		e.message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
	case problemWrongKey:
		return w.statusProblem(http.StatusUnauthorized)
	case problemStatus:
		return w.statusProblem(p.status)
	}
	return e
}

// responsesCode is the code that goes with a message.
func responsesCode(message string) string {
	for _, c := range []struct{ begins, code string }{
		{"Missing required parameter", "missing_required_parameter"},
		{"Invalid value", "invalid_value"},
		{"Invalid type", "invalid_type"},
		{"Invalid schema", "invalid_function_parameters"},
		{"Unsupported parameter", "unsupported_parameter"},
		{"Previous response", "previous_response_not_found"},
		{"The encrypted content", "invalid_encrypted_content"},
	} {
		if strings.HasPrefix(message, c.begins) {
			return c.code
		}
	}
	return ""
}

// statusProblem is the usual error for a status.
func (w responsesWire) statusProblem(status int) openaiError {
	e := openaiError{status: status, kind: "invalid_request_error"}
	switch {
	case status == http.StatusUnauthorized && w.codex:
		e.code, e.message = "token_expired", "Provided authentication token is expired. Please try signing in again."
	case status == http.StatusUnauthorized:
		e.code, e.message = "invalid_api_key", "Incorrect API key provided"
	case status == http.StatusNotFound:
		e.code, e.message = "model_not_found", "The model does not exist or you do not have access to it."
	case status == http.StatusTooManyRequests:
		e.kind, e.code, e.message = "requests", "rate_limit_exceeded", "Rate limit reached for requests"
	case status == http.StatusServiceUnavailable, status == statusOverloaded:
		e.kind, e.code, e.message = "server_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later."
	case status >= http.StatusInternalServerError:
		e.kind, e.code, e.message = "server_error", "server_error", "The server had an error while processing your request."
	default:
		e.message = http.StatusText(status)
	}
	return e
}
