package simulator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/simulator"
)

// anthropicRequest is a request of the given messages with two tools.
func anthropicRequest(messages ...object) object {
	return object{"model": "m", "max_tokens": 1000, "stream": true, "messages": messages, "tools": []object{anthropicTool("read"), anthropicTool("list")}}
}

func anthropicTool(name string) object {
	return object{"name": name, "description": "A tool.", "input_schema": object{"type": "object", "properties": object{}}}
}

func blocks(role string, content ...object) object {
	return object{"role": role, "content": content}
}

func textBlock(text string) object { return object{"type": "text", "text": text} }

func useBlock(id string) object {
	return object{"type": "tool_use", "id": id, "name": "read", "input": object{"path": "a"}}
}

func resultBlock(id string) object {
	return object{"type": "tool_result", "tool_use_id": id, "content": "text"}
}

func thinkBlock(text, signature string) object {
	return object{"type": "thinking", "thinking": text, "signature": signature}
}

// anthropicSignature is what the server puts under a piece of thinking.
func anthropicSignature(t *testing.T, thinking string) string {
	t.Helper()
	return scripted(t, simulator.Reply{Reasoning: thinking}).ask(anthropicDoor, anthropicDoor.hello).Signature
}

func thinkingOf(budget int) object { return object{"type": "enabled", "budget_tokens": budget} }

func TestAnthropicTakes(t *testing.T) {
	ask := say("user", "Hello.")
	uses, answers := blocks("assistant", useBlock("c1"), useBlock("c2")), blocks("user", resultBlock("c2"), resultBlock("c1"))
	signed := thinkBlock("I look.", anthropicSignature(t, "I look."))
	marked := func(block object) object { return with(block, "cache_control", object{"type": "ephemeral"}) }
	takes(t, anthropicDoor, map[string]object{
		"a question":                  anthropicRequest(ask),
		"text in blocks":              anthropicRequest(blocks("user", textBlock("Hello."), textBlock("You."))),
		"a system prompt":             with(anthropicRequest(ask), "system", "Be brief."),
		"a system prompt in blocks":   with(anthropicRequest(ask), "system", []object{textBlock("Be brief.")}),
		"no tools":                    with(anthropicRequest(ask), "tools", nil),
		"a later turn":                anthropicRequest(ask, say("assistant", "Hi."), ask),
		"results in another order":    anthropicRequest(ask, uses, answers),
		"text after results":          anthropicRequest(ask, uses, blocks("user", resultBlock("c1"), resultBlock("c2"), textBlock("And?"))),
		"an empty result":             anthropicRequest(ask, blocks("assistant", useBlock("c1")), blocks("user", with(resultBlock("c1"), "content", ""))),
		"a result without content":    anthropicRequest(ask, blocks("assistant", useBlock("c1")), blocks("user", with(resultBlock("c1"), "content", nil))),
		"a result in blocks":          anthropicRequest(ask, blocks("assistant", useBlock("c1")), blocks("user", with(resultBlock("c1"), "content", []object{textBlock("text")}))),
		"two steps":                   anthropicRequest(ask, uses, answers, blocks("assistant", textBlock("More."), useBlock("c3")), blocks("user", resultBlock("c3"))),
		"signed thinking":             anthropicRequest(ask, blocks("assistant", signed, useBlock("c1")), blocks("user", resultBlock("c1"))),
		"thinking while thinking":     with(with(anthropicRequest(ask, blocks("assistant", signed, useBlock("c1")), blocks("user", resultBlock("c1"))), "thinking", thinkingOf(1024)), "max_tokens", 1025),
		"hidden thinking":             with(with(anthropicRequest(ask, blocks("assistant", object{"type": "redacted_thinking", "data": "x"}, useBlock("c1")), blocks("user", resultBlock("c1"))), "thinking", thinkingOf(1024)), "max_tokens", 2000),
		"an old turn without":         with(with(anthropicRequest(ask, say("assistant", "Hi."), ask), "thinking", thinkingOf(1024)), "max_tokens", 2000),
		"adaptive thinking without":   with(anthropicRequest(ask, blocks("assistant", useBlock("c1")), blocks("user", resultBlock("c1"))), "thinking", object{"type": "adaptive"}),
		"an image":                    anthropicRequest(blocks("user", object{"type": "image", "source": object{}}, textBlock("What is it?"))),
		"four breakpoints":            with(with(anthropicRequest(blocks("user", marked(textBlock("Hello.")))), "system", []object{marked(textBlock("Be brief."))}), "tools", []object{marked(anthropicTool("read")), marked(anthropicTool("list"))}),
		"marks that are not set":      with(anthropicRequest(blocks("user", with(textBlock("a"), "cache_control", nil), object{"type": "text", "text": "b", "cache_control": (*int)(nil)})), "cache_control", object{"type": "ephemeral"}),
		"the smallest limit":          with(anthropicRequest(ask), "max_tokens", 1),
		"thinking that is turned off": with(anthropicRequest(ask), "thinking", object{"type": "disabled"}),
	})
}

func TestAnthropicRefuses(t *testing.T) {
	ask := say("user", "Hello.")
	use, answer := blocks("assistant", useBlock("c1")), blocks("user", resultBlock("c1"))
	signed := thinkBlock("I look.", anthropicSignature(t, "I look."))
	marked := func(block object) object { return with(block, "cache_control", object{"type": "ephemeral"}) }
	tool := func(change object) object { return with(anthropicRequest(ask), "tools", []object{change}) }
	thinking := func(messages ...object) object {
		return with(with(anthropicRequest(messages...), "thinking", thinkingOf(1024)), "max_tokens", 2000)
	}
	const (
		unexpected = "unexpected `tool_use_id` found in `tool_result` blocks: c9. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
		unanswered = "`tool_use` ids were found without `tool_result` blocks immediately after: c1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
		expected   = ". When `thinking` is enabled, a final `assistant` message must start with a thinking block. We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
		undefined  = "Requests which include `tool_use` or `tool_result` blocks must define tools"
		prefill    = "This model does not support assistant message prefill. The conversation must end with a user message."
	)
	refuses(t, anthropicDoor, map[string]refusal{
		"no model":                {with(anthropicRequest(ask), "model", nil), "model: Field required"},
		"no limit":                {with(anthropicRequest(ask), "max_tokens", nil), "max_tokens: Field required"},
		"a limit of nothing":      {with(anthropicRequest(ask), "max_tokens", 0), "max_tokens: Input should be greater than or equal to 1"},
		"a limit below nothing":   {with(anthropicRequest(ask), "max_tokens", -5), "max_tokens: Input should be greater than or equal to 1"},
		"no stream":               {with(anthropicRequest(ask), "stream", false), "stream: This server only streams: set `stream` to true."},
		"no messages":             {anthropicRequest(), "messages: at least one message is required"},
		"the assistant first":     {anthropicRequest(say("assistant", "Hi."), ask), `messages: first message must use the "user" role`},
		"the assistant last":      {anthropicRequest(ask, say("assistant", "I think")), prefill},
		"an unknown role":         {anthropicRequest(ask, say("tool", "a"), ask), "messages.1.role: Input should be 'user' or 'assistant'"},
		"two users":               {anthropicRequest(ask, ask), `messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row`},
		"two assistants":          {anthropicRequest(ask, say("assistant", "a"), say("assistant", "b"), ask), `messages: roles must alternate between "user" and "assistant", but found multiple "assistant" roles in a row`},
		"no content":              {anthropicRequest(say("user", "")), "messages.0: all messages must have non-empty content except for the optional final assistant message"},
		"no blocks":               {anthropicRequest(ask, object{"role": "assistant", "content": []object{}}, ask), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		"an empty block":          {anthropicRequest(blocks("user", textBlock(""))), "messages: text content blocks must be non-empty"},
		"a blank block":           {anthropicRequest(blocks("user", textBlock(" \n"))), "messages: text content blocks must contain non-whitespace text"},
		"a blank text":            {anthropicRequest(say("user", " \n")), "messages: text content blocks must contain non-whitespace text"},
		"a blank system prompt":   {with(anthropicRequest(ask), "system", []object{textBlock(" ")}), "system: text content blocks must be non-empty"},
		"an empty block inside":   {anthropicRequest(ask, use, blocks("user", with(resultBlock("c1"), "content", []object{textBlock("")}))), "messages: text content blocks must be non-empty"},
		"an unknown block":        {anthropicRequest(blocks("user", object{"type": "input_text", "text": "a"})), "messages.0.content.0: Input tag 'input_text' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'"},
		"a use without result":    {anthropicRequest(ask, use, ask), "messages.1: " + unanswered},
		"one of two results":      {anthropicRequest(ask, blocks("assistant", useBlock("c2"), useBlock("c1")), blocks("user", resultBlock("c2"))), "messages.1: " + unanswered},
		"text before a result":    {anthropicRequest(ask, use, blocks("user", textBlock("a"), resultBlock("c1"))), "messages.1: " + unanswered},
		"a result without use":    {anthropicRequest(blocks("user", resultBlock("c9"))), "messages.0.content.0: " + unexpected},
		"a result of another use": {anthropicRequest(ask, use, blocks("user", resultBlock("c1"), resultBlock("c9"))), "messages.2.content.1: " + unexpected},
		"a result too late":       {anthropicRequest(ask, blocks("assistant", useBlock("c9")), blocks("user", resultBlock("c9")), say("assistant", "Hm."), blocks("user", resultBlock("c9"))), "messages.4.content.0: " + unexpected},
		"two results of a use":    {anthropicRequest(ask, use, blocks("user", resultBlock("c1"), resultBlock("c1"))), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: c1"},
		"a use by the user":       {anthropicRequest(blocks("user", useBlock("c1"))), "messages.0: `tool_use` blocks can only be in `assistant` messages"},
		"a result by the model":   {anthropicRequest(ask, blocks("assistant", resultBlock("c1")), ask), "messages.1: `tool_result` blocks can only be in `user` messages"},
		"equal ids":               {anthropicRequest(ask, blocks("assistant", useBlock("c1"), useBlock("c1")), answer), "messages: `tool_use` ids must be unique"},
		"equal ids, later":        {anthropicRequest(ask, use, answer, use, answer), "messages: `tool_use` ids must be unique"},
		"an empty id":             {anthropicRequest(ask, blocks("assistant", useBlock("")), blocks("user", resultBlock(""))), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		"an odd id":               {anthropicRequest(ask, blocks("assistant", useBlock("c.1")), blocks("user", resultBlock("c.1"))), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		"a use without name":      {anthropicRequest(ask, blocks("assistant", with(useBlock("c1"), "name", "")), answer), "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		"an input in text":        {anthropicRequest(ask, blocks("assistant", with(useBlock("c1"), "input", `{"a":1}`)), answer), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		"no input":                {anthropicRequest(ask, blocks("assistant", with(useBlock("c1"), "input", nil)), answer), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		"a use without tools":     {with(anthropicRequest(ask, use, answer), "tools", nil), undefined},
		"a result without tools":  {with(anthropicRequest(answer), "tools", []object{}), undefined},
		"a tool without name":     {tool(with(anthropicTool("read"), "name", nil)), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		"a tool with a long name": {tool(anthropicTool(strings.Repeat("a", 129))), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		"a tool without schema":   {tool(with(anthropicTool("read"), "input_schema", nil)), "tools.0.custom.input_schema: Field required"},
		"a tool with a list":      {tool(with(anthropicTool("read"), "input_schema", object{"type": "array"})), "tools.0.custom.input_schema.type: Input should be 'object'"},
		"equal tools":             {with(anthropicRequest(ask), "tools", []object{anthropicTool("read"), anthropicTool("read")}), "tools: Tool names must be unique."},
		"changed thinking":        {anthropicRequest(ask, blocks("assistant", with(signed, "thinking", "I look!"), useBlock("c1")), answer), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"unsigned thinking":       {anthropicRequest(ask, blocks("assistant", with(signed, "signature", nil), useBlock("c1")), answer), "messages.1.content.0.thinking.signature: Field required"},
		"thinking by the user":    {anthropicRequest(blocks("user", signed)), "messages.0: `thinking` blocks can only be in `assistant` messages"},
		"thinking at the end":     {anthropicRequest(ask, blocks("assistant", signed), ask), "messages.1: The final block in an assistant message cannot be `thinking`."},
		"no thinking before text": {thinking(ask, blocks("assistant", textBlock("a"), useBlock("c1")), answer), "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`" + expected},
		"no thinking before use":  {thinking(ask, use, answer), "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`" + expected},
		"a small budget":          {with(thinking(ask), "thinking", thinkingOf(1023)), "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		"a budget of all":         {with(thinking(ask), "thinking", thinkingOf(2000)), "`max_tokens` must be greater than `thinking.budget_tokens`."},
		"unknown thinking":        {with(anthropicRequest(ask), "thinking", object{"type": "on"}), "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'"},
		"five breakpoints": {
			with(with(with(anthropicRequest(ask, use, blocks("user", with(resultBlock("c1"), "content", []object{marked(textBlock("a"))}), marked(textBlock("b")))), "cache_control", object{"type": "ephemeral"}), "system", []object{marked(textBlock("Be brief."))}), "tools", []object{marked(anthropicTool("read"))}),
			"A maximum of 4 blocks with cache_control may be provided. Found 5.",
		},
	})
}

func TestAnthropicWantsItsVersion(t *testing.T) {
	c := start(t, simulator.Options{})
	r := c.knock(anthropicDoor, marshal(t, anthropicDoor.hello), func(r *http.Request) { r.Header.Del("Anthropic-Version") })
	if got := errorMessage(t, anthropicDoor, r); r.status != http.StatusBadRequest || got != "anthropic-version: header is required" {
		t.Errorf("status %d: %s", r.status, got)
	}
}

func TestAnthropicRequestsAreSeenAsOnOtherWires(t *testing.T) {
	signed := thinkBlock("I look.", anthropicSignature(t, "I look."))
	c := start(t, simulator.Options{})
	c.ask(anthropicDoor, with(anthropicRequest(
		blocks("user", textBlock("Hel"), textBlock("lo.")),
		blocks("assistant", signed, textBlock("Reading."), useBlock("c1")),
		blocks("user", with(resultBlock("c1"), "content", []object{textBlock("te"), textBlock("xt")})),
	), "system", []object{textBlock("Be "), textBlock("brief.")}))
	wantSeen(t, c.last().Request, seen{Wire: simulator.WireAnthropic, Model: "m", System: "Be brief.", MaxOutput: 1000, Tools: "read list", Messages: []simulator.Message{
		{Role: simulator.RoleUser, Text: "Hello."},
		{Role: simulator.RoleAssistant, Reasoning: "I look.", Text: "Reading.", Calls: []simulator.Call{{ID: "c1", Name: "read", Input: `{"path":"a"}`}}},
		{Role: simulator.RoleTool, Results: []simulator.Result{{CallID: "c1", Output: "text"}}},
	}})
}

// seen is what matters of a request, whatever its wire.
type seen struct {
	Wire          simulator.Wire
	Model, System string
	MaxOutput     int
	Tools         string
	Messages      []simulator.Message
}

func wantSeen(t *testing.T, r *simulator.Request, want seen) {
	t.Helper()
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	got := seen{r.Wire, r.Model, r.System, r.MaxOutput, strings.Join(names, " "), r.Messages}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if !r.Stream || !r.Usage || r.InputTokens == 0 {
		t.Errorf("stream %v, usage %v, %d tokens", r.Stream, r.Usage, r.InputTokens)
	}
}
