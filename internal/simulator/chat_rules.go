package simulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file has the rules of Chat Completions. Each is enforced by at least one
// server in use.

func ruleProblem(param, format string, args ...any) *problem {
	return &problem{kind: problemRule, param: param, message: fmt.Sprintf(format, args...)}
}

// check judges a request by the rules of the wire.
func (w chatWire) check(body []byte, r *chatRequest) *problem {
	if !utf8.Valid(body) {
		return ruleProblem("", "We could not parse the JSON body of your request: it is not valid UTF-8.")
	}
	if p := checkChatParams(r); p != nil {
		return p
	}
	if p := checkChatTools(r.Tools); p != nil {
		return p
	}
	rules := chatRules{toolsOffered: len(r.Tools) > 0, demandReasoning: w.demandReasoning, seen: make(map[string]bool)}
	for i := range r.Messages {
		if p := rules.message(i, &r.Messages[i]); p != nil {
			return p
		}
	}
	return rules.end(len(r.Messages) - 1)
}

func checkChatParams(r *chatRequest) *problem {
	switch {
	case r.Model == "":
		return ruleProblem("model", "you must provide a model parameter")
	case len(r.Messages) == 0:
		return ruleProblem("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case !r.Stream && r.StreamOptions != nil:
		return ruleProblem("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case !r.Stream:
		return ruleProblem("stream", "This server only streams: set 'stream' to true.")
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return ruleProblem("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	limits := []struct {
		name  string
		value *int
	}{{"max_tokens", r.MaxTokens}, {"max_completion_tokens", r.MaxCompletionTokens}}
	for _, l := range limits {
		if l.value != nil && *l.value < 1 {
			return ruleProblem(l.name, "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", l.name, *l.value)
		}
	}
	return nil
}

// chatName is what names of tools look like.
var chatName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func checkChatTools(offered []chatTool) *problem {
	names := make(map[string]bool)
	for i, t := range offered {
		name := t.Function.Name
		at := fmt.Sprintf("tools[%d].function.name", i)
		var schema struct {
			Type       string
			Properties map[string]any
		}
		switch {
		case t.Type != "function":
			return ruleProblem(fmt.Sprintf("tools[%d].type", i), "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		case !chatName.MatchString(name):
			return ruleProblem(at, "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", at, chatName)
		case names[name]:
			return ruleProblem(at, "Tool names must be unique: '%s'.", name)
		case json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object" || schema.Properties == nil:
			return ruleProblem(fmt.Sprintf("tools[%d].function.parameters", i), "Invalid schema for function '%s': In context=(), object schema missing properties.", name)
		}
		names[name] = true
	}
	return nil
}

// chatRules goes through the messages of one request.
type chatRules struct {
	toolsOffered    bool
	demandReasoning bool

	// conversation is set by the first message that is no system message.
	conversation bool
	lastRole     string
	// seen has the ids of all calls, open those that have no result yet, and
	// answered those of the same message that have.
	seen           map[string]bool
	open, answered []string
}

func (c *chatRules) message(i int, m *chatMessage) *problem {
	at := fmt.Sprintf("messages[%d]", i)
	if m.Role != "tool" {
		if p := c.unanswered(at); p != nil {
			return p
		}
		c.answered = nil
	}
	if p := c.order(at, m); p != nil {
		return p
	}
	c.lastRole = m.Role
	c.conversation = c.conversation || !m.isSystem()
	switch m.Role {
	case "assistant":
		return c.assistant(at, m)
	case "tool":
		return c.result(at, m)
	}
	if m.Content.kind != contentText || m.Content.blank() {
		return contentProblem(at, m)
	}
	return nil
}

// order judges the role of a message by where it stands.
func (c *chatRules) order(at string, m *chatMessage) *problem {
	param := at + ".role"
	switch m.Role {
	case "system", "developer":
		if c.conversation {
			return ruleProblem(param, "System message must be at the beginning.")
		}
	case "user":
	case "assistant", "tool":
		if !c.conversation {
			return ruleProblem(param, "A conversation must start with a user message.")
		}
	default:
		return ruleProblem(param, "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", m.Role)
	}
	if m.Role != "assistant" && len(m.ToolCalls) > 0 {
		return ruleProblem(at+".tool_calls", "Only assistant messages may have 'tool_calls'.")
	}
	if !c.toolsOffered && (m.Role == "tool" || len(m.ToolCalls) > 0) {
		return ruleProblem("tools", "This provider doesn't support tool calling without `tools=` param specified: the messages have tool blocks and the request defines no tools.")
	}
	return nil
}

func (c *chatRules) assistant(at string, m *chatMessage) *problem {
	switch kind := m.Content.kind; {
	case kind == contentMissing, kind == contentOther, kind == contentText && m.Content.blank():
		return contentProblem(at, m)
	case kind == contentNull && len(m.ToolCalls) == 0:
		return contentProblem(at, m)
	case c.demandReasoning && len(m.ToolCalls) > 0 && m.Reasoning == nil:
		return ruleProblem(at+".reasoning_content", "Missing `reasoning_content` field in the assistant message at message index %s.", at)
	}
	for j, k := range m.ToolCalls {
		field := fmt.Sprintf("%s.tool_calls[%d]", at, j)
		var input map[string]any
		switch {
		case k.Type != "function":
			return ruleProblem(field+".type", "Invalid value: '%s'. Supported values are: 'function'.", k.Type)
		case k.ID == "":
			return ruleProblem(field+".id", "Invalid '%s.id': empty string.", field)
		case c.seen[k.ID]:
			return ruleProblem(field+".id", "Duplicate tool call id '%s'.", k.ID)
		case !chatName.MatchString(k.Function.Name):
			return ruleProblem(field+".function.name", "Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '%s'.", field, chatName)
		case json.Unmarshal([]byte(k.Function.Arguments), &input) != nil || input == nil:
			return ruleProblem(field+".function.arguments", "Invalid '%s.function.arguments': it must be a JSON object.", field)
		}
		c.seen[k.ID] = true
		c.open = append(c.open, k.ID)
	}
	return nil
}

// result judges a tool message, which must answer a call of the assistant
// message before it.
func (c *chatRules) result(at string, m *chatMessage) *problem {
	if slices.Contains(c.answered, m.ToolCallID) {
		return ruleProblem(at+".tool_call_id", "Duplicate value for 'tool_call_id' of '%s'.", m.ToolCallID)
	}
	if len(c.open) == 0 && len(c.answered) == 0 {
		return ruleProblem(at+".role", "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
	}
	i := slices.Index(c.open, m.ToolCallID)
	if i < 0 {
		return ruleProblem(at+".tool_call_id", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.ToolCallID)
	}
	if m.Content.kind != contentText {
		return contentProblem(at, m)
	}
	c.open = slices.Delete(c.open, i, i+1)
	c.answered = append(c.answered, m.ToolCallID)
	return nil
}

// unanswered reports the calls that have no result where there can be no more.
func (c *chatRules) unanswered(at string) *problem {
	if len(c.open) == 0 {
		return nil
	}
	return ruleProblem(at+".role", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(c.open, ", "))
}

func (c *chatRules) end(last int) *problem {
	at := fmt.Sprintf("messages[%d]", last)
	switch {
	case len(c.open) > 0:
		return c.unanswered(at)
	case !c.conversation:
		return ruleProblem("messages", "There must be at least one user message.")
	case c.lastRole == "assistant":
		return ruleProblem(at+".role", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

func contentProblem(at string, m *chatMessage) *problem {
	param := at + ".content"
	switch m.Content.kind {
	case contentMissing:
		return ruleProblem(param, "Failed to deserialize the JSON body: %s: missing field `content`.", at)
	case contentNull:
		return ruleProblem(param, "Invalid value for 'content': expected a string, got null.")
	case contentOther:
		return ruleProblem(param, "Invalid value for 'content': this model takes text only.")
	}
	return ruleProblem(param, "The text field in the content of the %s message is blank. Add text to the content, and try again.", m.Role)
}
