package simulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This file has the rules of Anthropic's Messages API. One is stricter than
// the provider's own server is today: that joins messages of equal roles, which
// servers that offer the same API refuse.

// check judges a request by the rules of the wire.
func (b *anthropicBody) check() *problem {
	if p := b.checkParameters(); p != nil {
		return p
	}
	if p := checkAnthropicTools(b.Tools); p != nil {
		return p
	}
	for _, block := range b.System {
		if blank(block.Text) {
			return broken("system: text content blocks must be non-empty")
		}
	}
	rules := anthropicRules{toolsOffered: len(b.Tools) > 0}
	for i, m := range b.Messages {
		if p := rules.message(i, m); p != nil {
			return p
		}
	}
	return b.checkThinking()
}

func (b *anthropicBody) checkParameters() *problem {
	switch {
	case b.Model == "":
		return broken("model: Field required")
	case b.MaxTokens == nil:
		return broken("max_tokens: Field required")
	case *b.MaxTokens < 1:
		return broken("max_tokens: Input should be greater than or equal to 1")
	case !b.Stream:
		return broken("stream: This server only streams: set `stream` to true.")
	case len(b.Messages) == 0:
		return broken("messages: at least one message is required")
	case b.Messages[0].Role == "assistant":
		return broken("messages: first message must use the \"user\" role")
	case b.Messages[len(b.Messages)-1].Role == "assistant":
		return broken(noPrefill)
	}
	switch b.Thinking.Type {
	case "", "disabled", "adaptive":
	case "enabled":
		if p := checkThinkingBudget(b.Thinking.Budget, *b.MaxTokens); p != nil {
			return p
		}
	default:
		return broken("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", b.Thinking.Type)
	}
	if n := b.breakpoints(); n > maxBreakpoints {
		return broken(tooManyBreakpoints, maxBreakpoints, n)
	}
	return nil
}

// What Claude says by itself, also on Bedrock.
const (
	noPrefill          = "This model does not support assistant message prefill. The conversation must end with a user message."
	tooManyBreakpoints = "A maximum of %d blocks with cache_control may be provided. Found %d."
	badSignature       = "%s: Invalid `signature` in `thinking` block"
	thinkingMissing    = "messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block. We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
)

func checkThinkingBudget(budget, output int) *problem {
	switch {
	case budget < minThinking:
		return broken("thinking.enabled.budget_tokens: Input should be greater than or equal to %d", minThinking)
	case output > 0 && budget >= output:
		return broken("`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	return nil
}

// anthropicName is what names of tools look like.
var anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func checkAnthropicTools(definitions []json.RawMessage) *problem {
	var names []string
	for i, definition := range definitions {
		var t struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		}
		switch {
		case json.Unmarshal(definition, &t) != nil || !anthropicName.MatchString(t.Name):
			return broken("tools.%d.custom.name: String should match pattern '%s'", i, anthropicName)
		case !isSet(t.Schema):
			return broken("tools.%d.custom.input_schema: Field required", i)
		case !isObjectSchema(t.Schema):
			return broken("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		names = append(names, t.Name)
	}
	if _, twice := firstDuplicate(names); twice {
		return broken("tools: Tool names must be unique.")
	}
	return nil
}

// anthropicRules goes through the messages of one request.
type anthropicRules struct {
	toolsOffered bool

	lastRole string
	// used has the ids of all tool uses so far, open those of the message
	// before.
	used, open []string
}

func (a *anthropicRules) message(i int, m anthropicMessage) *problem {
	at := fmt.Sprintf("messages.%d", i)
	switch {
	case m.Role != "user" && m.Role != "assistant":
		return broken("%s.role: Input should be 'user' or 'assistant'", at)
	case m.Role == a.lastRole:
		return broken("messages: roles must alternate between \"user\" and \"assistant\", but found multiple %q roles in a row", m.Role)
	case len(m.Content) == 0:
		return broken("%s: all messages must have non-empty content except for the optional final assistant message", at)
	}
	a.lastRole = m.Role
	if p := a.results(i, m); p != nil {
		return p
	}
	a.open = nil
	for j, block := range m.Content {
		if p := a.block(at, fmt.Sprintf("%s.content.%d", at, j), m.Role, block); p != nil {
			return p
		}
	}
	if last := m.Content[len(m.Content)-1].Type; m.Role == "assistant" && last == "thinking" {
		return broken("%s: The final block in an assistant message cannot be `thinking`.", at)
	}
	return nil
}

// results judges whether a message answers the tool uses of the one before.
// Only the results at its beginning do.
func (a *anthropicRules) results(i int, m anthropicMessage) *problem {
	var answered []string
	leading := true
	for j, block := range m.Content {
		if block.Type != "tool_result" {
			leading = false
			continue
		}
		at := fmt.Sprintf("messages.%d.content.%d", i, j)
		switch {
		case m.Role != "user":
			return broken("messages.%d: `tool_result` blocks can only be in `user` messages", i)
		case !a.toolsOffered:
			return broken(toolsUndefined)
		case !slices.Contains(a.open, block.ToolUseID):
			return broken("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", at, block.ToolUseID)
		case slices.Contains(answered, block.ToolUseID):
			return broken("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", at, block.ToolUseID)
		case leading:
			answered = append(answered, block.ToolUseID)
		}
	}
	if missing := without(a.open, answered); len(missing) > 0 {
		return broken("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(missing, ", "))
	}
	return nil
}

const toolsUndefined = "Requests which include `tool_use` or `tool_result` blocks must define tools"

// block judges one block of a message. at is the message, place the block.
func (a *anthropicRules) block(at, place, role string, block anthropicBlock) *problem {
	switch block.Type {
	case "text":
		return checkAnthropicText(block)
	case "tool_result":
		for _, part := range block.Content {
			if part.Type == "text" && part.Text == "" {
				return checkAnthropicText(part)
			}
		}
	case "thinking", "redacted_thinking":
		switch {
		case role != "assistant":
			return broken("%s: `%s` blocks can only be in `assistant` messages", at, block.Type)
		case block.Type == "thinking" && block.Signature == "":
			return broken("%s.thinking.signature: Field required", place)
		case block.Type == "thinking" && block.Signature != signature(block.Thinking):
			return broken(badSignature, place)
		}
	case "tool_use":
		switch {
		case role != "assistant":
			return broken("%s: `tool_use` blocks can only be in `assistant` messages", at)
		case !a.toolsOffered:
			return broken(toolsUndefined)
		case !idPattern.MatchString(block.ID):
			return broken("%s.tool_use.id: String should match pattern '%s'", place, idPattern)
		case slices.Contains(a.used, block.ID):
			return broken("messages: `tool_use` ids must be unique")
		case !anthropicName.MatchString(block.Name):
			return broken("%s.tool_use.name: String should match pattern '%s'", place, anthropicName)
		case !isObject(block.Input):
			return broken("%s.tool_use.input: Input should be a valid dictionary", place)
		}
		a.used, a.open = append(a.used, block.ID), append(a.open, block.ID)
	case "image", "document":
	default:
		return broken("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'", place, block.Type)
	}
	return nil
}

func checkAnthropicText(block anthropicBlock) *problem {
	switch {
	case block.Text == "":
		return broken("messages: text content blocks must be non-empty")
	case blank(block.Text):
		return broken("messages: text content blocks must contain non-whitespace text")
	}
	return nil
}

// checkThinking demands the thinking of a tool use back while its turn runs.
func (b *anthropicBody) checkThinking() *problem {
	n := len(b.Messages)
	if b.Thinking.Type != "enabled" || n < 2 || b.Messages[n-1].Content[0].Type != "tool_result" {
		return nil
	}
	first := b.Messages[n-2].Content[0].Type
	if first != "thinking" && first != "redacted_thinking" {
		return broken(thinkingMissing, n-2, first)
	}
	return nil
}

// breakpoints counts the marks for the prompt cache, wherever they may stand.
func (b *anthropicBody) breakpoints() int {
	n := 0
	count := func(mark json.RawMessage) {
		if isSet(mark) {
			n++
		}
	}
	count(b.CacheControl)
	for _, definition := range b.Tools {
		var t struct {
			CacheControl json.RawMessage `json:"cache_control"`
		}
		if json.Unmarshal(definition, &t) == nil {
			count(t.CacheControl)
		}
	}
	for _, block := range b.System {
		count(block.CacheControl)
	}
	for _, m := range b.Messages {
		for _, block := range m.Content {
			count(block.CacheControl)
			for _, part := range block.Content {
				count(part.CacheControl)
			}
		}
	}
	return n
}
