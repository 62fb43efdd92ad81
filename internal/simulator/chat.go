package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chatWire is OpenAI's Chat Completions. It is as strict as the strictest of
// the servers that offer it: what passes here passes everywhere. It streams
// only.
type chatWire struct {
	wording         Wording
	demandReasoning bool
}

func (chatWire) matches(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/chat/completions")
}

func (chatWire) credential(r *http.Request) string {
	_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer ")
	return strings.TrimSpace(key)
}

func (chatWire) contentType() string { return "text/event-stream; charset=utf-8" }

// chatRequest is the body of a request, as far as it matters here.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools"`
	MaxTokens           *int          `json:"max_tokens"`
	MaxCompletionTokens *int          `json:"max_completion_tokens"`
	Stream              bool          `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type chatMessage struct {
	Role       string      `json:"role"`
	Content    chatContent `json:"content"`
	Reasoning  *string     `json:"reasoning_content"`
	ToolCalls  []chatCall  `json:"tool_calls"`
	ToolCallID string      `json:"tool_call_id"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chatTool keeps its definition as it came.
type chatTool struct {
	raw      json.RawMessage
	Type     string
	Function struct {
		Name       string
		Parameters json.RawMessage
	}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *chatTool) UnmarshalJSON(data []byte) error {
	type plain chatTool
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	t.raw = append(json.RawMessage(nil), data...)
	return nil
}

// contentKind says what a message has for content.
type contentKind int

const (
	contentMissing contentKind = iota
	contentNull
	contentText
	// contentOther is something that is no text.
	contentOther
)

// chatContent is a text, a list of text parts, or null.
type chatContent struct {
	kind contentKind
	text string
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *chatContent) UnmarshalJSON(data []byte) error {
	var parts []struct{ Type, Text string }
	switch {
	case string(data) == "null":
		c.kind = contentNull
	case json.Unmarshal(data, &c.text) == nil:
		c.kind = contentText
	case json.Unmarshal(data, &parts) == nil:
		c.kind = contentText
		for _, p := range parts {
			if p.Type != "text" {
				c.kind = contentOther
			}
			c.text += p.Text
		}
	default:
		c.kind = contentOther
	}
	return nil
}

// blank reports whether there is no text to speak of.
func (c chatContent) blank() bool { return strings.TrimSpace(c.text) == "" }

func (w chatWire) parse(_ *http.Request, body []byte) (*Request, *problem) {
	var decoded chatRequest
	if err := json.Unmarshal(body, &decoded); err != nil {
		return &Request{Wire: WireChat}, ruleProblem("", "We could not parse the JSON body of your request: %v.", err)
	}
	return decoded.neutral(), w.check(body, &decoded)
}

// neutral makes the view of a request that all wires share.
func (r *chatRequest) neutral() *Request {
	request := &Request{Wire: WireChat, Model: r.Model, Stream: r.Stream}
	request.Usage = r.StreamOptions != nil && r.StreamOptions.IncludeUsage
	for _, limit := range []*int{r.MaxCompletionTokens, r.MaxTokens} {
		if limit != nil {
			request.MaxOutput = max(0, *limit)
			break
		}
	}
	for _, t := range r.Tools {
		request.Tools = append(request.Tools, Tool{Name: t.Function.Name, Definition: t.raw})
	}
	var system []string
	for _, m := range r.Messages {
		if m.isSystem() {
			system = append(system, m.Content.text)
			continue
		}
		request.Messages = append(request.Messages, m.neutral())
	}
	request.System = strings.Join(system, "\n\n")
	return request
}

func (m *chatMessage) isSystem() bool { return m.Role == "system" || m.Role == "developer" }

func (m *chatMessage) neutral() Message {
	if m.Role == "tool" {
		return Message{Role: RoleTool, Results: []Result{{CallID: m.ToolCallID, Output: m.Content.text}}}
	}
	message := Message{Role: Role(m.Role), Text: m.Content.text}
	if m.Reasoning != nil {
		message.Reasoning = *m.Reasoning
	}
	for _, k := range m.ToolCalls {
		message.Calls = append(message.Calls, Call{ID: k.ID, Name: k.Function.Name, Input: k.Function.Arguments})
	}
	return message
}

// chatError is the error object of this wire.
type chatError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	// Code is a text, a number or nothing.
	Code any `json:"code"`
}

func ptr[T any](v T) *T { return &v }

func (w chatWire) reject(p problem) rejection {
	e := chatError{Type: "invalid_request_error"}
	status := http.StatusBadRequest
	switch p.kind {
	case problemWindow:
		return w.wording.overflow(p)
	case problemOutput:
		e.Message = fmt.Sprintf("max_tokens is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", p.output, p.limit, p.output)
		e.Param, e.Code = ptr("max_tokens"), "invalid_value"
	case problemNoKey:
		status = http.StatusUnauthorized
		e.Message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
	case problemWrongKey:
		return w.reject(problem{kind: problemStatus, status: http.StatusUnauthorized})
	case problemStatus:
		status = p.status
		e = chatStatusError(status)
	default:
		e.Message = p.message
		if p.param != "" {
			e.Param = &p.param
		}
	}
	return rejection{status: status, body: mustJSON(map[string]any{"error": e})}
}

// chatStatusError is the usual error for a status.
func chatStatusError(status int) chatError {
	switch status {
	case http.StatusUnauthorized:
		return chatError{Message: "Incorrect API key provided", Type: "invalid_request_error", Code: "invalid_api_key"}
	case http.StatusForbidden:
		return chatError{Message: "You are not allowed to sample from this model", Type: "invalid_request_error", Code: "permission_denied"}
	case http.StatusNotFound:
		return chatError{Message: "The model does not exist or you do not have access to it.", Type: "invalid_request_error", Code: "model_not_found"}
	case http.StatusTooManyRequests:
		return chatError{Message: "Rate limit reached for requests. Please try again later.", Type: "requests", Code: "rate_limit_exceeded"}
	case http.StatusServiceUnavailable, statusOverloaded:
		return chatError{Message: "The engine is currently overloaded, please try again later", Type: "server_error", Code: "overloaded"}
	}
	if status < http.StatusInternalServerError {
		return chatError{Message: http.StatusText(status), Type: "invalid_request_error"}
	}
	return chatError{Message: "The server had an error while processing your request. Sorry about that!", Type: "server_error", Code: "server_error"}
}

// statusOverloaded is the status with which some providers say that they are
// overloaded; no standard has it.
const statusOverloaded = 529

func (w chatWire) failure(p problem) event {
	body := w.reject(p).body
	if p.kind == problemWindow && w.wording == WordingLMStudio {
		// Inside a stream its error is an object, in an event of its own.
		body = mustJSON(map[string]any{"error": map[string]string{
			"message": fmt.Sprintf("Trying to keep the first %d tokens when context the overflows. However, the model is loaded with context length of only %d tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input", p.input, p.limit),
		}})
		return event{data: []byte("event: error\ndata: " + body + "\n\n")}
	}
	return event{data: []byte("data: " + body + "\n\n")}
}
