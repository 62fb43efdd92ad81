package simulator_test

import (
	"strings"
	"testing"

	"keen/internal/simulator"
)

// bedrockRequest is a request of the given messages with two tools.
func bedrockRequest(messages ...object) object {
	return object{"messages": messages, "toolConfig": bedrockTools("read", "list")}
}

func bedrockTools(names ...string) object {
	tools := []object{}
	for _, name := range names {
		tools = append(tools, bedrockTool(name))
	}
	return object{"tools": tools}
}

func bedrockTool(name string) object {
	return object{"toolSpec": object{"name": name, "inputSchema": object{"json": object{"type": "object"}}}}
}

func bedrockTurn(role string, content ...object) object {
	return object{"role": role, "content": content}
}

func bedrockUse(id string) object {
	return object{"toolUse": object{"toolUseId": id, "name": "read", "input": object{"path": "a"}}}
}

func bedrockResult(id string) object { return bedrockResultOf(id, object{"text": "text"}) }

func bedrockResultOf(id string, content ...object) object {
	return object{"toolResult": object{"toolUseId": id, "content": content, "status": "success"}}
}

func bedrockThought(text, signature string) object {
	return object{"reasoningContent": object{"reasoningText": object{"text": text, "signature": signature}}}
}

func bedrockThinking(budget int) object {
	return object{"thinking": object{"type": "enabled", "budget_tokens": budget}}
}

func bedrockSignature(t *testing.T, text string) string {
	t.Helper()
	return scripted(t, simulator.Reply{Reasoning: text}).ask(bedrockDoor, bedrockDoor.hello).Signature
}

var (
	bedrockAsk   = bedrockTurn("user", object{"text": "Hello."})
	bedrockPoint = object{"cachePoint": object{"type": "default"}}
)

func TestBedrockTakes(t *testing.T) {
	ask, hi := bedrockAsk, bedrockTurn("assistant", object{"text": "Hi."})
	use, answer := bedrockTurn("assistant", bedrockUse("c1")), bedrockTurn("user", bedrockResult("c1"))
	thought := bedrockThought("I look.", bedrockSignature(t, "I look."))
	hidden := object{"reasoningContent": object{"redactedContent": "eA=="}}
	thinking := func(first object) object {
		return with(bedrockRequest(ask, bedrockTurn("assistant", first, bedrockUse("c1")), answer), "additionalModelRequestFields", bedrockThinking(1024))
	}
	cached := object{"tools": []object{bedrockTool("read"), bedrockPoint}}
	takes(t, bedrockDoor, map[string]object{
		"a question":               bedrockRequest(ask),
		"a system prompt":          with(bedrockRequest(ask), "system", []object{{"text": "Be brief."}, bedrockPoint}),
		"no tools":                 with(bedrockRequest(ask), "toolConfig", nil),
		"a later turn":             bedrockRequest(ask, hi, ask),
		"a use with its result":    bedrockRequest(ask, use, answer),
		"parallel uses":            bedrockRequest(ask, bedrockTurn("assistant", object{"text": "Hm."}, bedrockUse("c1"), bedrockUse("c2")), bedrockTurn("user", bedrockResult("c2"), bedrockResult("c1"))),
		"an id used again later":   bedrockRequest(ask, use, answer, use, answer),
		"a result without content": bedrockRequest(ask, use, bedrockTurn("user", bedrockResultOf("c1"))),
		"reasoning":                bedrockRequest(ask, bedrockTurn("assistant", thought, bedrockUse("c1")), answer),
		"reasoning, while on":      thinking(thought),
		"hidden reasoning":         thinking(hidden),
		"a budget below the limit": with(thinking(thought), "inferenceConfig", object{"maxTokens": 1025}),
		"an old turn without":      with(bedrockRequest(ask, hi, ask), "additionalModelRequestFields", bedrockThinking(1024)),
		"a limit":                  with(bedrockRequest(ask), "inferenceConfig", object{"maxTokens": 1}),
		"four cache points":        with(with(bedrockRequest(bedrockTurn("user", object{"text": "a"}, bedrockPoint), hi, bedrockTurn("user", object{"text": "b"}, bedrockPoint)), "system", []object{{"text": "Be brief."}, bedrockPoint}), "toolConfig", cached),
	})
}

func TestBedrockRefuses(t *testing.T) {
	ask, hi := bedrockAsk, bedrockTurn("assistant", object{"text": "Hi."})
	use, answer := bedrockTurn("assistant", bedrockUse("c1")), bedrockTurn("user", bedrockResult("c1"))
	signature := bedrockSignature(t, "I look.")
	thinking := func(budget int, messages ...object) object {
		return with(with(bedrockRequest(messages...), "additionalModelRequestFields", bedrockThinking(budget)), "inferenceConfig", object{"maxTokens": 2000})
	}
	used := func(key string, value any) object {
		changed := object{"toolUseId": "c1", "name": "read", "input": object{}}
		changed[key] = value
		return bedrockRequest(ask, bedrockTurn("assistant", object{"toolUse": changed}), answer)
	}
	point := bedrockTurn("user", object{"text": "a"}, bedrockPoint, bedrockPoint, bedrockPoint)
	const (
		says      = "The model returned the following errors: "
		alternate = "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again."
		undefined = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
		pattern   = " failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+"
		blank     = " is blank. Add text to the text field, and try again."
		exceeds   = ".content exceeds the number of toolUse blocks of previous turn."
		expected  = ". When `thinking` is enabled, a final `assistant` message must start with a thinking block. We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
		place     = "The text field in the ContentBlock object at messages."
		one       = "1 validation error detected: Value "
	)
	refuses(t, bedrockDoor, map[string]refusal{
		"no messages":               {bedrockRequest(), "The messages field must not be empty."},
		"an unknown role":           {bedrockRequest(ask, bedrockTurn("system", object{"text": "a"}), ask), one + "'system' at 'messages.2.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]"},
		"the assistant first":       {bedrockRequest(hi, ask), "A conversation must start with a user message. Try again with a conversation that starts with a user message."},
		"the assistant last":        {bedrockRequest(ask, hi), says + "This model does not support assistant message prefill. The conversation must end with a user message."},
		"two users":                 {bedrockRequest(ask, ask), alternate},
		"two assistants":            {bedrockRequest(ask, hi, hi, ask), alternate},
		"no content":                {bedrockRequest(bedrockTurn("user")), "The content field in the Message object at messages.0 is empty. Add a ContentBlock object to the content field and try again."},
		"a blank text":              {bedrockRequest(ask, bedrockTurn("assistant", object{"text": "a"}, object{"text": " \n"}), ask), place + "1.content.1" + blank},
		"an empty text":             {bedrockRequest(bedrockTurn("user", object{"text": ""})), place + "0.content.0" + blank},
		"a blank result":            {bedrockRequest(ask, use, bedrockTurn("user", bedrockResultOf("c1", object{"text": "a"}, object{"text": ""}))), place + "2.content.0.toolResult.content.1" + blank},
		"a blank system prompt":     {with(bedrockRequest(ask), "system", []object{{"text": " "}}), "The text field in the SystemContentBlock object at system.0" + blank},
		"a use without result":      {bedrockRequest(ask, use, ask), "Expected toolResult blocks at messages.2.content for the following Ids: c1"},
		"one of three results":      {bedrockRequest(ask, bedrockTurn("assistant", bedrockUse("c1"), bedrockUse("c2"), bedrockUse("c3")), bedrockTurn("user", bedrockResult("c2"))), "Expected toolResult blocks at messages.2.content for the following Ids: c1, c3"},
		"a result of another use":   {bedrockRequest(ask, use, bedrockTurn("user", bedrockResult("c9"))), "Expected toolResult blocks at messages.2.content for the following Ids: c1"},
		"a result without use":      {bedrockRequest(answer), "The number of toolResult blocks at messages.0" + exceeds},
		"a result too many":         {bedrockRequest(ask, use, bedrockTurn("user", bedrockResult("c1"), bedrockResult("c9"))), "The number of toolResult blocks at messages.2" + exceeds},
		"a result too late":         {bedrockRequest(ask, use, answer, hi, answer), "The number of toolResult blocks at messages.4" + exceeds},
		"two results of a use":      {bedrockRequest(ask, use, bedrockTurn("user", bedrockResult("c1"), bedrockResult("c1"))), "The toolResult blocks at messages.2.content contain duplicate Ids: c1"},
		"equal ids":                 {bedrockRequest(ask, bedrockTurn("assistant", bedrockUse("c1"), bedrockUse("c1")), answer), "The toolUse blocks at messages.1.content contain duplicate Ids: c1"},
		"an empty id":               {used("toolUseId", ""), one + "'' at 'messages.2.member.content.1.member.toolUse.toolUseId'" + pattern},
		"an odd id":                 {used("toolUseId", "c:1"), one + "'c:1' at 'messages.2.member.content.1.member.toolUse.toolUseId'" + pattern},
		"a use without name":        {used("name", ""), one + "'' at 'messages.2.member.content.1.member.toolUse.name'" + pattern},
		"an input in text":          {used("input", `{"a":1}`), "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide a json object for the field and try again."},
		"a use by the user":         {bedrockRequest(bedrockTurn("user", bedrockUse("c1"))), says + "messages.0: `tool_use` and `thinking` blocks can only be in `assistant` messages"},
		"a result by the model":     {bedrockRequest(ask, bedrockTurn("assistant", bedrockResult("c1")), ask), says + "messages.1: `tool_result` blocks can only be in `user` messages"},
		"text beside a result":      {bedrockRequest(ask, use, bedrockTurn("user", bedrockResult("c1"), object{"text": "And?"})), "messages.2.content: Conversation blocks and tool result blocks cannot be provided in the same turn."},
		"a use without tools":       {with(bedrockRequest(ask, use, answer), "toolConfig", nil), undefined},
		"a result without tools":    {with(bedrockRequest(answer), "toolConfig", nil), undefined},
		"no tool in the list":       {with(bedrockRequest(ask), "toolConfig", bedrockTools()), one + "'[]' at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		"a tool with an odd name":   {with(bedrockRequest(ask), "toolConfig", bedrockTools("read", "read.file")), one + "'read.file' at 'toolConfig.tools.2.member.toolSpec.name'" + pattern},
		"a tool without schema":     {with(bedrockRequest(ask), "toolConfig", object{"tools": []object{{"toolSpec": object{"name": "read"}}}}), "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object."},
		"equal tools":               {with(bedrockRequest(ask), "toolConfig", bedrockTools("read", "read")), says + "tools: Tool names must be unique."},
		"changed reasoning":         {bedrockRequest(ask, bedrockTurn("assistant", bedrockThought("I look!", signature), bedrockUse("c1")), answer), says + "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"unsigned reasoning":        {bedrockRequest(ask, bedrockTurn("assistant", bedrockThought("I look.", ""), bedrockUse("c1")), answer), says + "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"no reasoning before a use": {thinking(1024, ask, use, answer), says + "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`" + expected},
		"no reasoning before text":  {thinking(1024, ask, bedrockTurn("assistant", object{"text": "a"}, bedrockUse("c1")), answer), says + "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`" + expected},
		"a small budget":            {thinking(1023, ask), says + "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		"a budget of all":           {thinking(2000, ask), says + "`max_tokens` must be greater than `thinking.budget_tokens`."},
		"a limit of nothing":        {with(bedrockRequest(ask), "inferenceConfig", object{"maxTokens": 0}), one + "'0' at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		"five cache points":         {with(bedrockRequest(point), "system", []object{{"text": "Be brief."}, bedrockPoint, bedrockPoint}), says + "A maximum of 4 blocks with cache_control may be provided. Found 5."},
	})
}

func TestBedrockRequestsAreSeenAsOnOtherWires(t *testing.T) {
	thought := bedrockThought("I look.", bedrockSignature(t, "I look."))
	c := start(t, simulator.Options{})
	c.ask(bedrockDoor, with(with(bedrockRequest(
		bedrockTurn("user", object{"text": "Hel"}, object{"text": "lo."}),
		bedrockTurn("assistant", thought, object{"text": "Reading."}, bedrockUse("c1")),
		bedrockTurn("user", bedrockResultOf("c1", object{"text": "te"}, object{"text": "xt"}), bedrockPoint),
	), "system", []object{{"text": "Be "}, {"text": "brief."}, bedrockPoint}), "inferenceConfig", object{"maxTokens": 100}))
	wantSeen(t, c.last().Request, seen{Wire: simulator.WireBedrock, Model: "claude:0", System: "Be brief.", MaxOutput: 100, Tools: "read list", Messages: []simulator.Message{
		{Role: simulator.RoleUser, Text: "Hello."},
		{Role: simulator.RoleAssistant, Reasoning: "I look.", Text: "Reading.", Calls: []simulator.Call{{ID: "c1", Name: "read", Input: `{"path":"a"}`}}},
		{Role: simulator.RoleTool, Results: []simulator.Result{{CallID: "c1", Output: "text"}}},
	}})
}

func TestBedrockAnswersAreFrames(t *testing.T) {
	c := start(t, simulator.Options{})
	r := c.knock(bedrockDoor, marshal(t, bedrockDoor.hello), nil)
	if got := r.header.Get("Content-Type"); got != "application/vnd.amazon.eventstream" || strings.HasPrefix(r.body, "data:") {
		t.Errorf("content type %q: %q", got, r.body)
	}
}
