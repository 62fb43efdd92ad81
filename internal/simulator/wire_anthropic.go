package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// WireAnthropic is Anthropic's Messages API.
const WireAnthropic Wire = "anthropic"

// anthropicWire implements [wire]. It streams only.
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
	MaxTokens *int               `json:"max_tokens"`
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

// anthropicContent is a list of blocks, or a string that stands for one; an
// empty string stands for none.
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
		*c = nil
		if text != "" {
			*c = anthropicContent{{Type: "text", Text: text}}
		}
		return nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(data, &blocks); err != nil {
		return err
	}
	*c = blocks
	return nil
}

// text joins what the blocks say.
func (c anthropicContent) text() string {
	var b strings.Builder
	for _, block := range c {
		b.WriteString(block.Text)
	}
	return b.String()
}

func (anthropicWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: WireAnthropic, Usage: true}
	var b anthropicBody
	if err := decodeBody(body, &b); err != nil {
		return request, broken("The request body is not valid JSON: %v", err)
	}
	request.Model, request.Stream, request.System = b.Model, b.Stream, b.System.text()
	if b.MaxTokens != nil {
		request.MaxOutput = max(0, *b.MaxTokens)
	}
	for _, definition := range b.Tools {
		request.Tools = append(request.Tools, namedTool(definition))
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
			n.Results = append(n.Results, Result{CallID: block.ToolUseID, Output: block.Content.text()})
		}
	}
	if len(n.Results) > 0 && n.Text == "" {
		n.Role = RoleTool
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
		return http.StatusBadRequest, "invalid_request_error", claudeOverflow(p)
	case problemOutput:
		return http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("max_tokens: %d > %d, which is the maximum allowed number of output tokens for this model", p.output, p.limit)
	case problemNoKey:
		return http.StatusUnauthorized, "authentication_error", "x-api-key header is required"
	case problemWrongKey:
		return http.StatusUnauthorized, "authentication_error", "invalid x-api-key"
	}
	switch p.status {
	case http.StatusUnauthorized:
		return p.status, "authentication_error", "invalid x-api-key"
	case http.StatusPaymentRequired:
		return p.status, "billing_error", "Your credit balance is too low to access the Anthropic API."
	case http.StatusForbidden:
		return p.status, "permission_error", "Your API key does not have permission to use the specified resource."
	case http.StatusNotFound:
		return p.status, "not_found_error", "model not found"
	case http.StatusRequestEntityTooLarge:
		return p.status, "request_too_large", "Request exceeds the maximum size"
	case http.StatusTooManyRequests:
		return p.status, "rate_limit_error", "This request would exceed your rate limit."
	case http.StatusGatewayTimeout:
		return p.status, "timeout_error", "Request timed out"
	case statusOverloaded:
		return p.status, "overloaded_error", "Overloaded"
	}
	if p.status < http.StatusInternalServerError {
		return p.status, "invalid_request_error", http.StatusText(p.status)
	}
	return p.status, "api_error", "Internal server error"
}

// claudeOverflow says that a request is too large for Claude.
func claudeOverflow(p problem) string {
	if p.input > p.limit {
		return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", p.input, p.limit)
	}
	return fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", p.input, p.output, p.limit)
}

func (anthropicWire) failure(p problem) event {
	_, kind, message := anthropicProblem(p)
	return anthropicEvent("error", map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
}
