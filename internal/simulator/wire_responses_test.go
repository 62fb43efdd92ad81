package simulator_test

import (
	"net/http"
	"strings"
	"testing"

	"keen/internal/simulator"
)

// responsesRequest is a request of the given items with two tools.
func responsesRequest(items ...object) object {
	return object{"model": "m", "stream": true, "input": items, "tools": []object{functionOf("read"), functionOf("list")}}
}

func codexRequest(items ...object) object {
	return with(with(responsesRequest(items...), "store", false), "instructions", "Be brief.")
}

func functionOf(name string) object {
	return object{"type": "function", "name": name, "parameters": object{"type": "object", "properties": object{}}}
}

func callItem(id string) object {
	return object{"type": "function_call", "call_id": id, "name": "read", "arguments": `{"path":"a"}`}
}

func outputItem(id string) object {
	return object{"type": "function_call_output", "call_id": id, "output": "text"}
}

func parts(role, kind string, texts ...string) object {
	var content []object
	for _, text := range texts {
		content = append(content, object{"type": kind, "text": text})
	}
	return object{"type": "message", "role": role, "content": content}
}

// reasoned is a reasoning item as the server gives it, and the id of the call
// that came with it.
func reasoned(t *testing.T, text string) (item object, follower string) {
	t.Helper()
	c := scripted(t, simulator.Reply{Reasoning: text, Calls: []simulator.Call{{Name: "read", Input: "{}"}}})
	got := c.ask(responsesDoor, with(responsesDoor.hello, "include", []string{"reasoning.encrypted_content"}))
	if got.Signature == "" || got.ID == "" || got.Follower == "" {
		t.Fatalf("got %+v", got)
	}
	return object{
		"type": "reasoning", "id": got.ID, "encrypted_content": got.Signature,
		"summary": []object{{"type": "summary_text", "text": text}},
	}, got.Follower
}

func TestResponsesTakes(t *testing.T) {
	ask := say("user", "Hello.")
	item, follower := reasoned(t, "I look.")
	takes(t, responsesDoor, map[string]object{
		"a question":               responsesRequest(ask),
		"a text":                   with(responsesRequest(), "input", "Hello."),
		"text in parts":            responsesRequest(parts("user", "input_text", "Hel", "lo.")),
		"a system prompt":          with(responsesRequest(ask), "instructions", "Be brief."),
		"a system message":         responsesRequest(say("system", "Be brief."), say("developer", "Really."), ask),
		"two user messages":        responsesRequest(ask, ask),
		"an image":                 responsesRequest(object{"role": "user", "content": []object{{"type": "input_image"}}}),
		"no tools":                 with(responsesRequest(ask), "tools", nil),
		"a later turn":             responsesRequest(ask, parts("assistant", "output_text", "Hi."), ask),
		"an answer in plain text":  responsesRequest(ask, say("assistant", "Hi."), ask),
		"parallel calls":           responsesRequest(ask, callItem("c1"), callItem("c2"), outputItem("c2"), outputItem("c1")),
		"outputs between calls":    responsesRequest(ask, callItem("c1"), outputItem("c1"), callItem("c2"), outputItem("c2")),
		"an empty output":          responsesRequest(ask, callItem("c1"), with(outputItem("c1"), "output", "")),
		"an output in parts":       responsesRequest(ask, callItem("c1"), with(outputItem("c1"), "output", []object{{"type": "input_text", "text": "a"}})),
		"reasoning before a call":  responsesRequest(ask, item, callItem("c1"), outputItem("c1")),
		"reasoning before text":    responsesRequest(ask, item, say("assistant", "Hm."), callItem("c1"), outputItem("c1")),
		"two pieces of reasoning":  responsesRequest(ask, item, item, callItem("c1"), outputItem("c1")),
		"a call with its own id":   responsesRequest(ask, item, with(callItem("c1"), "id", follower), outputItem("c1")),
		"the smallest limit":       with(responsesRequest(ask), "max_output_tokens", 16),
		"the longest id of a call": responsesRequest(ask, callItem(strings.Repeat("c", 64)), outputItem(strings.Repeat("c", 64))),
	})
	takes(t, codexDoor, map[string]object{
		"a question":  codexRequest(ask),
		"a call":      codexRequest(ask, item, callItem("c1"), outputItem("c1")),
		"a developer": codexRequest(say("developer", "Be brief."), ask),
	})
}

func TestResponsesRefuses(t *testing.T) {
	ask := say("user", "Hello.")
	item, follower := reasoned(t, "I look.")
	id, _ := item["id"].(string)
	tool := func(change object) object { return with(responsesRequest(ask), "tools", []object{change}) }
	message := func(role, kind string) object { return responsesRequest(parts(role, kind, "Hello."), ask) }
	call := func(key string, value any) object {
		return responsesRequest(ask, with(callItem("c1"), key, value), outputItem("c1"))
	}
	const (
		bad     = "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed."
		alone   = "Item '%s' of type 'reasoning' was provided without its required following item."
		missing = "Missing required parameter: "
		inputs  = "Supported values are: 'input_text', 'input_image', 'input_file'."
	)
	of := func(format string) string { return strings.ReplaceAll(format, "%s", id) }
	refuses(t, responsesDoor, map[string]refusal{
		"no model":                {with(responsesRequest(ask), "model", nil), missing + "'model'."},
		"no stream":               {with(responsesRequest(ask), "stream", nil), "This server only streams: set 'stream' to true."},
		"no input":                {with(responsesRequest(), "input", nil), missing + "'input'."},
		"no items":                {with(responsesRequest(), "input", []object{}), missing + "'input'."},
		"an empty text":           {with(responsesRequest(), "input", ""), "Invalid 'input[0].content[0].text': empty string. Expected a string with minimum length 1, but got an empty string instead."},
		"what is not stored":      {with(responsesRequest(ask), "previous_response_id", "resp_1"), "Previous response with id 'resp_1' not found."},
		"a small limit":           {with(responsesRequest(ask), "max_output_tokens", 15), "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead."},
		"a limit below nothing":   {with(responsesRequest(ask), "max_output_tokens", -1), "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got -1 instead."},
		"a tool of Chat":          {tool(object{"type": "function", "function": functionOf("read")}), missing + "'tools[0].name'."},
		"a tool of another type":  {tool(with(functionOf("read"), "type", "code")), "Invalid value: 'code'. Supported values are: 'function'."},
		"a tool with an odd name": {tool(functionOf("read.file")), "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		"a tool without schema":   {tool(with(functionOf("read"), "parameters", nil)), `Invalid schema for function 'read': schema must be a JSON Schema of 'type: "object"'.`},
		"an unknown item":         {responsesRequest(object{"type": "tool_use"}, ask), "Invalid value: 'tool_use'. Supported values are: 'function_call', 'function_call_output', 'message', and 'reasoning'."},
		"an unknown role":         {responsesRequest(say("tool", "a"), ask), "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."},
		"no content":              {responsesRequest(object{"role": "user"}), missing + "'input[0].content'."},
		"an empty message":        {responsesRequest(parts("user", "input_text", "a", "")), "Invalid 'input[0].content[1].text': empty string. Expected a string with minimum length 1, but got an empty string instead."},
		"the model's text, asked": {message("user", "output_text"), "Invalid value: 'output_text'. " + inputs},
		"a part of Chat":          {message("user", "text"), "Invalid value: 'text'. " + inputs},
		"the user's text, told":   {message("assistant", "input_text"), "Invalid value: 'input_text'. Supported values are: 'output_text', 'refusal'."},
		"the assistant last":      {responsesRequest(ask, say("assistant", "I think")), "The input must end with a user message or the output of a tool."},
		"a call without output":   {responsesRequest(ask, callItem("c1"), ask), "No tool output found for function call c1."},
		"one of two outputs":      {responsesRequest(ask, callItem("c1"), callItem("c2"), outputItem("c2")), "No tool output found for function call c1."},
		"an output without call":  {responsesRequest(outputItem("c9")), "No tool call found for function call output with call_id c9."},
		"an output before":        {responsesRequest(ask, outputItem("c1"), callItem("c1")), "No tool call found for function call output with call_id c1."},
		"two outputs of a call":   {responsesRequest(ask, callItem("c1"), outputItem("c1"), outputItem("c1")), "No tool call found for function call output with call_id c1."},
		"an output of no call":    {responsesRequest(ask, callItem("c1"), with(outputItem("c1"), "call_id", nil)), missing + "'input[2].call_id'."},
		"no output":               {responsesRequest(ask, callItem("c1"), with(outputItem("c1"), "output", nil)), missing + "'input[2].output'."},
		"a call without id":       {call("call_id", ""), missing + "'input[1].call_id'."},
		"a call without name":     {call("name", nil), missing + "'input[1].name'."},
		"a call with a long id":   {call("call_id", strings.Repeat("c", 65)), "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."},
		"equal calls":             {responsesRequest(ask, callItem("c1"), outputItem("c1"), callItem("c1"), outputItem("c1")), "Duplicate item found with call_id c1. Remove duplicate items from your input and try again."},
		"torn arguments":          {call("arguments", `{"path":`), "Invalid 'input[1].arguments': it must be a JSON object."},
		"no arguments":            {call("arguments", ""), "Invalid 'input[1].arguments': it must be a JSON object."},
		"changed reasoning":       {responsesRequest(ask, with(item, "summary", []object{}), callItem("c1"), outputItem("c1")), of(bad)},
		"reasoning, then a user":  {responsesRequest(ask, item, ask), of(alone)},
		"reasoning, then output":  {responsesRequest(ask, callItem("c1"), item, outputItem("c1")), of(alone)},
		"reasoning at the end":    {responsesRequest(ask, item), of(alone)},
		"a call left alone":       {responsesRequest(ask, with(callItem("c1"), "id", follower), outputItem("c1")), "Item '" + follower + "' of type 'function_call' was provided without its required 'reasoning' item: '" + id + "'."},
		"a message left alone":    {responsesRequest(with(say("assistant", "Hm."), "id", follower), ask), "Item '" + follower + "' of type 'message' was provided without its required 'reasoning' item: '" + id + "'."},
	})
}

func TestCodexRefuses(t *testing.T) {
	ask := say("user", "Hello.")
	refuses(t, codexDoor, map[string]refusal{
		"no instructions":    {with(codexRequest(ask), "instructions", nil), "Instructions are required"},
		"empty instructions": {with(codexRequest(ask), "instructions", ""), "Instructions are required"},
		"to store":           {with(codexRequest(ask), "store", true), "Store must be set to false"},
		"not to say":         {with(codexRequest(ask), "store", nil), "Store must be set to false"},
		"no stream":          {with(codexRequest(ask), "stream", false), "Stream must be set to true"},
		"a limit":            {with(codexRequest(ask), "max_output_tokens", 1000), "Unsupported parameter: max_output_tokens"},
		"a text for items":   {with(codexRequest(), "input", "Hello."), "Input must be a list"},
		"a system message":   {codexRequest(say("system", "Be brief."), ask), "System messages are not allowed"},
		"an unpaired output": {codexRequest(outputItem("c9")), "No tool call found for function call output with call_id c9."},
	})
	for name := range codexDoor.header {
		c := start(t, simulator.Options{})
		r := c.knock(codexDoor, marshal(t, codexDoor.hello), func(r *http.Request) { r.Header.Del(name) })
		if got := errorMessage(t, codexDoor, r); r.status != http.StatusBadRequest || !strings.EqualFold(got, "Missing header: "+name) {
			t.Errorf("without %s: status %d: %s", name, r.status, got)
		}
	}
}

func TestReasoningThatIsNotSentBackIsNotFound(t *testing.T) {
	item, _ := reasoned(t, "I look.")
	body := responsesRequest(say("user", "Hello."), with(item, "encrypted_content", nil), callItem("c1"), outputItem("c1"))
	r := start(t, simulator.Options{}).knock(responsesDoor, marshal(t, body), nil)
	if got := errorMessage(t, responsesDoor, r); r.status != http.StatusNotFound || !strings.Contains(got, "Items are not persisted when `store` is set to false.") {
		t.Errorf("status %d: %s", r.status, got)
	}
}

func TestResponsesErrorsHaveACode(t *testing.T) {
	ask := say("user", "Hello.")
	item, _ := reasoned(t, "I look.")
	for name, c := range map[string]struct {
		body object
		want string
	}{
		"a missing field":   {responsesRequest(object{"role": "user"}), `"code":"missing_required_parameter"`},
		"a field's path":    {responsesRequest(object{"role": "user"}), `"param":"input[0].content"`},
		"an unknown value":  {responsesRequest(say("tool", "a")), `"code":"invalid_value"`},
		"no encryption":     {responsesRequest(ask, with(item, "encrypted_content", "x")), `"code":"invalid_encrypted_content"`},
		"nothing stored":    {with(responsesRequest(ask), "previous_response_id", "resp_1"), `"code":"previous_response_not_found"`},
		"a broken schema":   {with(responsesRequest(ask), "tools", []object{with(functionOf("a"), "parameters", nil)}), `"code":"invalid_function_parameters"`},
		"an odd tool":       {with(responsesRequest(ask), "tools", []int{1}), `"code":"invalid_type"`},
		"an unpaired call":  {responsesRequest(ask, callItem("c1")), `"code":null`},
		"an input too deep": {with(responsesRequest(), "input", object{}), `"code":"invalid_type"`},
	} {
		if r := start(t, simulator.Options{}).knock(responsesDoor, marshal(t, c.body), nil); r.status != http.StatusBadRequest || !strings.Contains(r.body, c.want) {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
}

func TestItemsAreSeenAsMessagesOfOtherWires(t *testing.T) {
	item, _ := reasoned(t, "I look.")
	c := start(t, simulator.Options{})
	c.ask(codexDoor, codexRequest(
		parts("user", "input_text", "Hel", "lo."), item, parts("assistant", "output_text", "Reading."), callItem("c1"), callItem("c2"),
		outputItem("c1"), with(outputItem("c2"), "output", []object{{"type": "input_text", "text": "more"}}), say("user", "And?"), say("user", "Well?"),
	))
	signature, _ := item["encrypted_content"].(string)
	call := func(id string) simulator.Call { return simulator.Call{ID: id, Name: "read", Input: `{"path":"a"}`} }
	wantSeen(t, c.last().Request, seen{Wire: simulator.WireCodex, Model: "m", System: "Be brief.", Tools: "read list", Messages: []simulator.Message{
		{Role: simulator.RoleUser, Text: "Hello."},
		{Role: simulator.RoleAssistant, Reasoning: "I look." + signature, Text: "Reading.", Calls: []simulator.Call{call("c1"), call("c2")}},
		{Role: simulator.RoleTool, Results: []simulator.Result{{CallID: "c1", Output: "text"}, {CallID: "c2", Output: "more"}}},
		{Role: simulator.RoleUser, Text: "And?"},
		{Role: simulator.RoleUser, Text: "Well?"},
	}})
}
