package simulator_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"keen/internal/simulator"
)

// geminiRequest is a request of the given turns with two tools.
func geminiRequest(turns ...object) object {
	return object{"contents": turns, "tools": []object{{"functionDeclarations": []object{{"name": "read"}, {"name": "list"}}}}}
}

func geminiTurn(role string, parts ...object) object { return object{"role": role, "parts": parts} }

func geminiText(role, text string) object { return geminiTurn(role, object{"text": text}) }

func geminiCall(name, signature string) object {
	part := object{"functionCall": object{"name": name, "args": object{"path": "a"}}}
	if signature != "" {
		part["thoughtSignature"] = signature
	}
	return part
}

func geminiResponse(name string) object {
	return object{"functionResponse": object{"name": name, "response": object{"output": "text"}}}
}

// geminiSignature is what the server puts on a call of read.
func geminiSignature(t *testing.T) string {
	t.Helper()
	return scripted(t, simulator.Calls(simulator.Call{Name: "read", Input: "{}"})).ask(geminiDoor, geminiDoor.hello).Signature
}

func TestGeminiTakes(t *testing.T) {
	ask := geminiText("user", "Hello.")
	signature := geminiSignature(t)
	call, answer := geminiTurn("model", geminiCall("read", signature)), geminiTurn("user", geminiResponse("read"))
	const skip = "skip_thought_signature_validator"
	bodies := map[string]object{
		"a question":                 geminiRequest(ask),
		"no role":                    geminiRequest(object{"parts": []object{{"text": "Hello."}}}),
		"a system prompt":            with(geminiRequest(ask), "systemInstruction", geminiText("", "Be brief.")),
		"no tools":                   with(geminiRequest(ask), "tools", nil),
		"an image":                   geminiRequest(geminiTurn("user", object{"inlineData": object{"data": ""}}, object{"fileData": object{}})),
		"a later turn":               geminiRequest(ask, geminiText("model", "Hi."), ask),
		"a call with its response":   geminiRequest(ask, call, answer),
		"a response of a function":   geminiRequest(ask, call, with(answer, "role", "function")),
		"text before a call":         geminiRequest(ask, geminiTurn("model", object{"text": "Hm."}, geminiCall("read", signature)), answer),
		"parallel calls, one signed": geminiRequest(ask, geminiTurn("model", geminiCall("read", signature), geminiCall("list", "")), geminiTurn("user", geminiResponse("read"), geminiResponse("list"))),
		"two steps":                  geminiRequest(ask, call, answer, call, answer),
		"an old turn without":        geminiRequest(ask, geminiTurn("model", geminiCall("read", "")), answer, geminiText("model", "Done."), ask),
		"a call from elsewhere":      geminiRequest(ask, geminiTurn("model", geminiCall("read", skip)), answer),
		"the same in base64":         geminiRequest(ask, geminiTurn("model", geminiCall("read", base64.StdEncoding.EncodeToString([]byte(skip)))), answer),
		"a call without arguments":   geminiRequest(ask, geminiTurn("model", object{"functionCall": object{"name": "read"}, "thoughtSignature": signature}), answer),
		"a signature without text":   geminiRequest(ask, geminiTurn("model", object{"text": "", "thoughtSignature": signature}), ask),
		"a limit":                    with(geminiRequest(ask), "generationConfig", object{"maxOutputTokens": 1}),
	}
	takes(t, geminiDoor, bodies)
	older := geminiDoor
	older.path = strings.Replace(older.path, "gemini-3-pro", "gemini-2.5-pro", 1)
	takes(t, older, map[string]object{"a call without signature": geminiRequest(ask, geminiTurn("model", geminiCall("read", "")), answer)})
}

func TestGeminiRefuses(t *testing.T) {
	ask := geminiText("user", "Hello.")
	signature := geminiSignature(t)
	signed, unsigned := geminiTurn("model", geminiCall("read", signature)), geminiTurn("model", geminiCall("read", ""))
	answer := geminiTurn("user", geminiResponse("read"))
	tools := func(names ...string) object {
		var declared []object
		for _, name := range names {
			declared = append(declared, object{"name": name})
		}
		return with(geminiRequest(ask), "tools", []object{{"functionDeclarations": declared}})
	}
	const (
		number    = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		callTurn  = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
		response  = "Please ensure that function response turn comes immediately after a function call turn."
		alternate = "Please ensure that multiturn requests alternate between user and model."
		ends      = "Please ensure that multiturn requests ends with a user role or a function response."
		missing   = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:read` , position %. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
		oneof     = "data: required oneof field 'data' must have one initialized field"
		name      = ".name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
		request   = "* GenerateContentRequest."
	)
	refuses(t, geminiDoor, map[string]refusal{
		"no turns":                  {geminiRequest(), request + "contents: contents is not specified"},
		"a limit of nothing":        {with(geminiRequest(ask), "generationConfig", object{"maxOutputTokens": 0}), request + "generation_config.max_output_tokens: max_output_tokens must be positive."},
		"a limit below nothing":     {with(geminiRequest(ask), "generationConfig", object{"maxOutputTokens": -1}), request + "generation_config.max_output_tokens: max_output_tokens must be positive."},
		"the model first":           {geminiRequest(geminiText("model", "Hi."), ask), "Please ensure that the conversation starts with a user role."},
		"a call first":              {geminiRequest(signed, answer), callTurn},
		"the model last":            {geminiRequest(ask, geminiText("model", "Hi.")), ends},
		"a call last":               {geminiRequest(ask, signed), ends},
		"an unknown role":           {geminiRequest(geminiText("assistant", "Hi.")), "Please use a valid role: user, model."},
		"no parts":                  {geminiRequest(geminiTurn("user")), request + "contents[0].parts: contents.parts must not be empty."},
		"an empty part":             {geminiRequest(geminiTurn("user", object{})), request + "contents[0].parts[0]." + oneof},
		"an empty text":             {geminiRequest(ask, geminiTurn("model", object{"text": "a"}, object{"text": ""}), ask), request + "contents[1].parts[1]." + oneof},
		"two users":                 {geminiRequest(ask, ask), alternate},
		"two models":                {geminiRequest(ask, geminiText("model", "a"), geminiText("model", "b"), ask), alternate},
		"a call without response":   {geminiRequest(ask, signed, ask), number},
		"one of two responses":      {geminiRequest(ask, geminiTurn("model", geminiCall("read", signature), geminiCall("list", "")), answer), number},
		"a response too many":       {geminiRequest(ask, signed, geminiTurn("user", geminiResponse("read"), geminiResponse("read"))), number},
		"a response without call":   {geminiRequest(answer), response},
		"a response too late":       {geminiRequest(ask, signed, answer, geminiText("model", "Hm."), answer), response},
		"a response by the model":   {geminiRequest(ask, geminiTurn("model", geminiResponse("read")), ask), response},
		"a call by the user":        {geminiRequest(geminiTurn("user", geminiCall("read", signature))), callTurn},
		"a call after a call":       {geminiRequest(ask, signed, signed, answer), alternate},
		"another name":              {geminiRequest(ask, signed, geminiTurn("user", geminiResponse("list"))), `Please ensure that the function responses have the names of the function calls, in their order: ["read"], not ["list"].`},
		"another order":             {geminiRequest(ask, geminiTurn("model", geminiCall("read", signature), geminiCall("list", "")), geminiTurn("user", geminiResponse("list"), geminiResponse("read"))), `Please ensure that the function responses have the names of the function calls, in their order: ["read" "list"], not ["list" "read"].`},
		"a call without name":       {geminiRequest(ask, geminiTurn("model", geminiCall("", signature)), geminiTurn("user", geminiResponse(""))), request + "contents[1].parts[0].function_call.name: Name cannot be empty."},
		"a response without name":   {geminiRequest(ask, signed, geminiTurn("user", geminiResponse(""))), request + "contents[2].parts[0].function_response.name: Name cannot be empty."},
		"arguments in text":         {geminiRequest(ask, geminiTurn("model", object{"functionCall": object{"name": "read", "args": "a"}}), answer), `Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct), "a"`},
		"a response in text":        {geminiRequest(ask, signed, geminiTurn("user", object{"functionResponse": object{"name": "read", "response": "a"}})), `Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), "a"`},
		"an empty response":         {geminiRequest(ask, signed, geminiTurn("user", object{"functionResponse": object{"name": "read", "response": nil}})), `Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), null`},
		"a call without signature":  {geminiRequest(ask, unsigned, answer), strings.Replace(missing, "%", "2", 1)},
		"a step without signature":  {geminiRequest(ask, signed, answer, unsigned, answer), strings.Replace(missing, "%", "4", 1)},
		"a signature on the second": {geminiRequest(ask, geminiTurn("model", geminiCall("read", ""), geminiCall("read", signature)), geminiTurn("user", geminiResponse("read"), geminiResponse("read"))), strings.Replace(missing, "%", "2", 1)},
		"another signature":         {geminiRequest(ask, geminiTurn("model", geminiCall("read", "eHh4")), answer), "Corrupted thought signature."},
		"a tool without name":       {tools("read", ""), request + "tools[0].function_declarations[1]" + name},
		"a tool with a long name":   {tools(strings.Repeat("a", 65)), request + "tools[0].function_declarations[0]" + name},
		"a tool with an odd name":   {tools("read file"), request + "tools[0].function_declarations[0]" + name},
		"equal tools":               {tools("read", "read"), "Duplicate function declaration found: read"},
	})
}

func TestGeminiStreamsEventsOnly(t *testing.T) {
	r := start(t, simulator.Options{}).knock(geminiDoor, marshal(t, geminiDoor.hello), func(r *http.Request) { r.URL.RawQuery = "" })
	if got := errorMessage(t, geminiDoor, r); r.status != http.StatusBadRequest || !strings.Contains(got, "alt=sse") {
		t.Errorf("status %d: %s", r.status, got)
	}
}

func TestAnErrorOfGeminisKeyHasItsReason(t *testing.T) {
	c := start(t, simulator.Options{Key: "secret"})
	r := c.knock(geminiDoor, marshal(t, geminiDoor.hello), func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", "other") })
	if !strings.Contains(r.body, `"reason":"API_KEY_INVALID"`) {
		t.Error(r.body)
	}
}

func TestGeminisTurnsAreSeenAsOnOtherWires(t *testing.T) {
	failed := object{"functionResponse": object{"name": "list", "response": object{"error": "no such file"}}}
	own := object{"functionResponse": object{"name": "list", "response": object{"lines": 3}}}
	c := start(t, simulator.Options{})
	signature := geminiSignature(t)
	c.ask(geminiDoor, with(with(geminiRequest(
		geminiTurn("user", object{"text": "Hel"}, object{"text": "lo."}),
		geminiTurn("model", object{"text": "I look.", "thought": true}, object{"text": "Reading."}, geminiCall("read", signature), geminiCall("list", ""), geminiCall("list", "")),
		geminiTurn("user", geminiResponse("read"), failed, own),
	), "systemInstruction", geminiText("", "Be brief.")), "generationConfig", object{"maxOutputTokens": 100}))
	call := func(name string) simulator.Call { return simulator.Call{Name: name, Input: `{"path":"a"}`} }
	wantSeen(t, c.last().Request, seen{Wire: simulator.WireGemini, Model: "gemini-3-pro", System: "Be brief.", MaxOutput: 100, Tools: "read list", Messages: []simulator.Message{
		{Role: simulator.RoleUser, Text: "Hello."},
		{Role: simulator.RoleAssistant, Reasoning: "I look.", Text: "Reading.", Calls: []simulator.Call{call("read"), call("list"), call("list")}},
		{Role: simulator.RoleTool, Results: []simulator.Result{{Output: "text"}, {Output: "no such file"}, {Output: `{"lines":3}`}}},
	}})
}
