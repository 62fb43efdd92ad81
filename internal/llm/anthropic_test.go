package llm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// Pieces of a stream of the Messages API.
const (
	anthropicStart = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":30,"cache_read_input_tokens":60,"cache_creation_input_tokens":10,"output_tokens":1}}}`
	anthropicEnd   = `{"type":"message_stop"}`
)

// anthropicSaid is one block: how it begins, and its deltas.
func anthropicSaid(index int, block string, deltas ...string) string {
	all := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)}
	for _, d := range deltas {
		all = append(all, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d))
	}
	return events(append(all, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))...)
}

func anthropicText(index int, text string) string {
	return anthropicSaid(index, `{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text))
}

func anthropicThought(index int, text, signature string) string {
	return anthropicSaid(index, `{"type":"thinking","thinking":"","signature":""}`,
		fmt.Sprintf(`{"type":"thinking_delta","thinking":%q}`, text), fmt.Sprintf(`{"type":"signature_delta","signature":%q}`, signature))
}

func anthropicCall(index int, id, name, input string) string {
	return anthropicSaid(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name),
		fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, input[:len(input)/2]), fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, input[len(input)/2:]))
}

// anthropicAnswer is a whole stream of blocks.
func anthropicAnswer(stop string, blocks ...string) string {
	return events(anthropicStart) + strings.Join(blocks, "") +
		events(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}}}`, stop), anthropicEnd)
}

func TestAnthropicRequestHasItsShape(t *testing.T) {
	s := newChatServer(t, chatStream(anthropicAnswer("end_turn", anthropicText(0, "ok"))))
	c := begin(t, wireOf(t, s, "anthropic"), turnRequest{System: "Be brief.", History: chatHistory, Specs: chatSpecs})
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()[0]
	wantJSON(t, "request", sentJSON(t, sent), `{
  "model": "model-1", "max_tokens": 4096, "stream": true, "cache_control": {"type": "ephemeral"},
  "system": [{"type": "text", "text": "Be brief."}],
  "messages": [
    {"role": "user", "content": [{"type": "text", "text": "Look & <see>."}]},
    {"role": "assistant", "content": [{"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "call_000001", "name": "read", "input": {"path": "a.go"}},
      {"type": "tool_use", "id": "call_000002", "name": "bad_name_", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "call_000001", "is_error": false, "content": [{"type": "text", "text": "package a"}]},
      {"type": "tool_result", "tool_use_id": "call_000002", "is_error": true, "content": [{"type": "text", "text": "no such tool"}]}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    {"role": "user", "content": [{"type": "text", "text": "Thanks. Go on."}]}
  ],
  "tools": [
    {"name": "list", "description": "Lists files.", "input_schema": {"type": "object"}},
    {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "required": ["path"],
      "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}}}
  ]
}`)
	if sent.path != "/v1/messages" {
		t.Errorf("path = %s", sent.path)
	}
	if diff := cmp.Diff([]string{"key-1"}, sent.header.Values("X-Api-Key")); diff != "" || sent.header.Get("Authorization") != "" || len(sent.header.Values("Anthropic-Version")) != 1 {
		t.Errorf("headers: %v", sent.header)
	}
}

func TestAnthropicRequestFollowsTheConfiguration(t *testing.T) {
	const summarized, off = `{"type":"adaptive","display":"summarized"}`, `{"type":"disabled"}`
	for name, tt := range map[string]struct {
		change                  func(*ClientConfig)
		oneShot                 bool
		thinking, effort, cache string
	}{
		"plain":                  {func(*ClientConfig) {}, false, "", "", `{"type":"ephemeral"}`},
		"no prompt caching":      {func(c *ClientConfig) { c.Quirks.NoPromptCache = true }, false, "", "", ""},
		"level":                  {func(c *ClientConfig) { c.Effort = "max" }, false, summarized, `{"effort":"max"}`, `{"type":"ephemeral"}`},
		"level in a summary":     {func(c *ClientConfig) { c.Effort = "max" }, true, summarized, `{"effort":"low"}`, `{"type":"ephemeral"}`},
		"off":                    {func(c *ClientConfig) { c.Effort = "off" }, false, off, "", `{"type":"ephemeral"}`},
		"number":                 {func(c *ClientConfig) { c.Effort = "2000" }, false, `{"type":"enabled","budget_tokens":2000}`, "", `{"type":"ephemeral"}`},
		"number above the limit": {func(c *ClientConfig) { c.Effort = "32000" }, false, `{"type":"enabled","budget_tokens":3072}`, "", `{"type":"ephemeral"}`},
		"number below the least": {func(c *ClientConfig) { c.Effort = "100" }, false, `{"type":"enabled","budget_tokens":1024}`, "", `{"type":"ephemeral"}`},
		"number in a summary":    {func(c *ClientConfig) { c.Effort = "2000" }, true, off, "", `{"type":"ephemeral"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatStream(anthropicAnswer("end_turn", anthropicText(0, "ok"))))
			r := chatUserTurn("Hi.")
			r.OneShot = tt.oneShot
			if _, _, err := chatSample(t, begin(t, wireOf(t, s, "anthropic", tt.change), r)); err != nil {
				t.Fatal(err)
			}
			body := sentJSON(t, s.sent()[0])
			wantJSON(t, "thinking", body["thinking"], tt.thinking)
			wantJSON(t, "output_config", body["output_config"], tt.effort)
			wantJSON(t, "cache_control", body["cache_control"], tt.cache)
			for _, gone := range []string{"temperature", "top_p", "top_k"} {
				if _, sent := body[gone]; sent {
					t.Errorf("%s is sent, which the server refuses", gone)
				}
			}
		})
	}
}

func TestAnthropicThinksNotWhereThereIsNoRoom(t *testing.T) {
	s := newChatServer(t, chatStream(anthropicAnswer("end_turn", anthropicText(0, "ok"))))
	c := begin(t, wireOf(t, s, "anthropic", func(c *ClientConfig) { c.Effort = "2000" }), chatUserTurn("Hi."))
	if _, err := chatPrepare(t, c, requestLimits{Budget: 1 << 20, Output: 1200}).sample(t.Context(), func(delta) {}); err != nil {
		t.Fatal(err)
	}
	body := sentJSON(t, s.sent()[0])
	wantJSON(t, "thinking", body["thinking"], "")
	wantJSON(t, "max_tokens", body["max_tokens"], "1200")
}

func TestAnthropicCompatibleServersGetWhatTheyKnow(t *testing.T) {
	for name, tt := range map[string]struct {
		quirks  Quirks
		headers map[string]string
		want    map[string][]string
	}{
		"old version": {Quirks{AnthropicVersion: "2023-06-01"}, nil, map[string][]string{"X-Api-Key": {"key-1"}, "Authorization": nil, "Anthropic-Version": {"2023-06-01"}}},
		"bearer":      {Quirks{BearerAuth: true}, nil, map[string][]string{"X-Api-Key": nil, "Authorization": {"Bearer key-1"}}},
		"own headers": {Quirks{}, map[string]string{"X-Title": "keen"}, map[string][]string{"X-Title": {"keen"}, "X-Api-Key": {"key-1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatStream(anthropicAnswer("end_turn", anthropicText(0, "ok"))))
			c := wireOf(t, s, "anthropic", func(c *ClientConfig) { c.Quirks, c.Headers, c.BaseURL = tt.quirks, tt.headers, c.BaseURL+"/anthropic" })
			if _, _, err := ask(t, c); err != nil {
				t.Fatal(err)
			}
			sent := s.sent()[0]
			if sent.path != "/anthropic/v1/messages" {
				t.Errorf("path = %s", sent.path)
			}
			for key, want := range tt.want {
				if diff := cmp.Diff(want, sent.header.Values(key)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

func TestAnthropicReadsAnswers(t *testing.T) {
	usage := &Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 60, CacheWriteTokens: 10}
	hello := anthropicText(0, "Hello")
	call := tools.Call{ID: "a", Name: "read", Input: chatInput(`{"path":"x"}`)}
	for name, tt := range map[string]struct {
		body   string
		want   step
		pieces string
	}{
		"text":                      {anthropicAnswer("end_turn", hello), step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20}, "Hello"},
		"stop sequence":             {anthropicAnswer("stop_sequence", hello), step{Text: "Hello", Stop: StopEnd, RawStop: "stop_sequence", Usage: usage, AnswerTokens: 20}, "Hello"},
		"no event lines":            {strings.NewReplacer("event: ", ": ").Replace(anthropicAnswer("end_turn", hello)), step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20}, "Hello"},
		"carriage returns":          {strings.ReplaceAll(anthropicAnswer("end_turn", hello), "\n", "\r\n"), step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20}, "Hello"},
		"no blank line at the end":  {strings.TrimRight(anthropicAnswer("end_turn", hello), "\n"), step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20}, "Hello"},
		"pings and unknown events":  {events(`{"type":"ping"}`, `{"type":"whim"}`) + anthropicAnswer("end_turn", hello), step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20}, "Hello"},
		"thinking, text and a call": {anthropicAnswer("tool_use", anthropicThought(0, "Hm.", "sig"), anthropicText(1, "So."), anthropicCall(2, "a", "read", `{"path":"x"}`)), step{Text: "So.", Reasoning: 3, Calls: []tools.Call{call}, Stop: StopToolCalls, RawStop: "tool_use", Usage: usage, AnswerTokens: 20}, "<Hm.>So."},
		"call without input":        {anthropicAnswer("tool_use", anthropicSaid(0, `{"type":"tool_use","id":"a","name":"list","input":{}}`)), step{Calls: []tools.Call{{ID: "a", Name: "list", Input: chatInput(`{}`)}}, Stop: StopToolCalls, RawStop: "tool_use", Usage: usage, AnswerTokens: 20}, ""},
		"two calls with one id":     {anthropicAnswer("tool_use", anthropicCall(0, "a", "read", `{"path":"x"}`), anthropicCall(1, "a", "read", `{"path":"x"}`)), step{Calls: []tools.Call{call, {ID: "call_2", Name: "read", Input: call.Input}}, Stop: StopToolCalls, RawStop: "tool_use", Usage: usage, AnswerTokens: 20}, ""},
		"length":                    {anthropicAnswer("max_tokens", anthropicThought(0, "Hm.", "sig"), anthropicText(1, "I wri"), anthropicCall(2, "a", "read", `{}`)), step{Text: "I wri", Reasoning: 3, CutCalls: 1, Stop: StopLength, RawStop: "max_tokens", Usage: usage}, "<Hm.>I wri"},
		"refusal after a call":      {anthropicAnswer("refusal", anthropicText(0, "I"), anthropicCall(1, "a", "read", `{}`)), step{Text: "I", CutCalls: 1, Stop: StopRefusal, RawStop: "refusal", Usage: usage}, "I"},
		"window full":               {anthropicAnswer("model_context_window_exceeded", hello), step{Text: "Hello", Stop: StopContextWindow, RawStop: "model_context_window_exceeded", Usage: usage}, "Hello"},
		"unknown reason":            {anthropicAnswer("whim", hello), step{Text: "Hello", Stop: StopUnknown, RawStop: "whim", Usage: usage, AnswerTokens: 20}, "Hello"},
		"nothing but thinking":      {anthropicAnswer("end_turn", anthropicThought(0, "Hm.", "sig")), step{Reasoning: 3, Stop: StopEnd, RawStop: "end_turn", Usage: usage}, "<Hm.>"},
		"nothing but blanks":        {anthropicAnswer("end_turn", anthropicText(0, "\n\n")), step{Stop: StopEnd, RawStop: "end_turn", Usage: usage}, "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnswer(t, wireOf(t, newChatServer(t, chatStream(tt.body)), "anthropic"), tt.want, tt.pieces)
		})
	}
}

func TestAnthropicNeverTakesABrokenAnswerForASuccess(t *testing.T) {
	begun := events(anthropicStart) + anthropicText(0, "Hi")
	inside := func(kind, message string) http.HandlerFunc {
		return chatStream(begun + fmt.Sprintf("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":%q,\"message\":%q}}\n\n", kind, message))
	}
	stopped := events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`)
	for name, b := range map[string]brokenAnswer{
		"clean cut":             {chatStream(begun), apierror.KindTransient, "before its end"},
		"cut before the end":    {chatStream(begun + stopped), apierror.KindTransient, "before its end"},
		"reset":                 {torn("text/event-stream", begun), apierror.KindTransient, "connection was closed"},
		"half an event":         {chatStream(begun + "event: message_delta\ndata: {\"type\":\"mess\n\n"), apierror.KindTransient, ""},
		"half a line":           {chatStream(begun + stopped + "event: message_st"), apierror.KindTransient, "before its end"},
		"block that never was":  {chatStream(events(anthropicStart, `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"Hi"}}`)), apierror.KindTransient, ""},
		"overloaded":            {inside("overloaded_error", "Overloaded"), apierror.KindTransient, "Overloaded"},
		"server":                {inside("api_error", "Internal server error"), apierror.KindTransient, "Internal server error"},
		"rate":                  {inside("rate_limit_error", "This request would exceed your organization's rate limit of 40,000 input tokens per minute"), apierror.KindRateLimitTokens, "per minute"},
		"overflow":              {inside("invalid_request_error", "prompt is too long: 209303 tokens > 200000 maximum"), apierror.KindContextOverflow, "209303"},
		"invalid":               {inside("invalid_request_error", "messages.1: unexpected role"), apierror.KindOther, "unexpected role"},
		"key":                   {inside("authentication_error", "invalid x-api-key"), apierror.KindAuth, "invalid x-api-key"},
		"error without a name":  {chatStream(begun + "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), apierror.KindTransient, "Overloaded"},
		"error as text":         {chatReply(500, "application/json", `{"error":"model runner crashed unexpectedly"}`), apierror.KindTransient, "500"},
		"error of another wire": {chatReply(400, "application/json", `{"error":{"message":"This model's maximum context length is 32768 tokens, however you requested 40000 tokens","code":400}}`), apierror.KindContextOverflow, "32768"},
		"detail":                {chatReply(404, "application/json", `{"detail":"Not Found"}`), apierror.KindOther, "404"},
	} {
		t.Run(name, func(t *testing.T) { wantBroken(t, "anthropic", b) })
	}
}

func TestAnthropicReplaysSignedThinkingInItsPlace(t *testing.T) {
	s := newChatServer(t,
		chatStream(anthropicAnswer("tool_use",
			anthropicThought(0, "Hm.", "sig-1"), anthropicSaid(1, `{"type":"redacted_thinking","data":"REDACTED"}`), anthropicText(2, "\n\n"),
			anthropicText(3, "So."), anthropicCall(4, "a", "read", `{"path":"x"}`), anthropicThought(5, "Later.", "sig-2"))),
		chatStream(anthropicAnswer("end_turn", anthropicText(0, "ok"))),
	)
	c := begin(t, wireOf(t, s, "anthropic"), chatUserTurn("Hi."))
	answer, _, err := chatSample(t, c)
	if err != nil {
		t.Fatal(err)
	}
	c.appendResults(chatResults(answer.Calls, ""))
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	// Neither blank texts nor thinking at the end: both are refused.
	wantJSON(t, "messages", sentJSON(t, s.sent()[1])["messages"], `[
  {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
  {"role": "assistant", "content": [
    {"type": "thinking", "thinking": "Hm.", "signature": "sig-1"}, {"type": "redacted_thinking", "data": "REDACTED"},
    {"type": "text", "text": "So."}, {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": false, "content": [{"type": "text", "text": "(empty)"}]}]}
]`)
}

func TestAnthropicKeepsTheTextOfARefusedCallAlone(t *testing.T) {
	s := newChatServer(t,
		chatStream(anthropicAnswer("max_tokens", anthropicThought(0, "Hm.", "sig"), anthropicCall(1, "a", "read", `{}`))),
		chatStream(anthropicAnswer("end_turn", anthropicText(0, "ok"))),
	)
	c := begin(t, wireOf(t, s, "anthropic"), chatUserTurn("Hi."))
	before := c.estimate()
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	if c.estimate() != before {
		t.Error("an answer with neither text nor whole calls was recorded")
	}
	c.appendUser("Go on.")
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "messages", sentJSON(t, s.sent()[1])["messages"], `[{"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": "Go on."}]}]`)
}
