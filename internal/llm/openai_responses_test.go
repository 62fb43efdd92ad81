package llm

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// Pieces of a stream of the Responses API.
func responsesMessage(text string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}}`, text)
}

func responsesDelta(text string) string {
	return fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":%q}`, text)
}

func responsesCall(id, name, input string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":%q,"name":%q,"arguments":%q,"status":"completed"}}`, id, name, input)
}

const (
	responsesThought    = `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I look."}],"encrypted_content":"ENCRYPTED"}}`
	responsesThinking   = `{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"I look."}`
	responsesCallBegins = `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":""}}`
	responsesUsage      = `"usage":{"input_tokens":100,"output_tokens":20,"total_tokens":120,"input_tokens_details":{"cached_tokens":64},"output_tokens_details":{"reasoning_tokens":5}}`
	responsesEnd        = `{"type":"response.completed","response":{"id":"r","status":"completed","output":[],` + responsesUsage + `}}`
)

func responsesIncomplete(reason string) string {
	return fmt.Sprintf(`{"type":"response.incomplete","response":{"id":"r","status":"incomplete","incomplete_details":{"reason":%q},%s}}`, reason, responsesUsage)
}

// responsesText is the stream of an answer.
func responsesText(text string) string {
	return events(responsesDelta(text), responsesMessage(text), responsesEnd)
}

func TestResponsesRequestHasItsShape(t *testing.T) {
	s := newChatServer(t, chatStream(responsesText("ok")))
	c := begin(t, wireOf(t, s, "responses"), turnRequest{System: "Be brief.", History: chatHistory, Specs: chatSpecs, SessionID: "session-1"})
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()[0]
	wantJSON(t, "request", sentJSON(t, sent), `{
  "model": "model-1", "stream": true, "store": false, "max_output_tokens": 4096,
  "include": ["reasoning.encrypted_content"], "prompt_cache_key": "session-1",
  "instructions": "Be brief.",
  "input": [
    {"role": "user", "content": "Look & <see>."},
    {"role": "assistant", "content": "I look."},
    {"type": "function_call", "call_id": "call_000001", "name": "read", "arguments": "{\"path\":\"a.go\"}"},
    {"type": "function_call", "call_id": "call_000002", "name": "bad_name_", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_000001", "output": "package a"},
    {"type": "function_call_output", "call_id": "call_000002", "output": "no such tool"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Thanks. Go on."}
  ],
  "tools": [
    {"type": "function", "name": "list", "description": "Lists files.", "parameters": {"type": "object"}, "strict": false},
    {"type": "function", "name": "read", "description": "Reads a file.", "strict": false, "parameters": {"type": "object", "required": ["path"],
      "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}}}
  ]
}`)
	if sent.path != "/responses" || sent.header.Get("Authorization") != "Bearer key-1" {
		t.Errorf("path %s, headers %v", sent.path, sent.header)
	}
	if !bytes.Contains(sent.body, chatSpecs[1].Schema) {
		t.Error("the schema is not sent byte for byte")
	}
}

func TestResponsesRequestFollowsTheConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		change          func(*ClientConfig)
		oneShot         bool
		reasoning, hint string
	}{
		"plain":                 {func(*ClientConfig) {}, false, "", `"session-1"`},
		"no prompt caching":     {func(c *ClientConfig) { c.Quirks.NoPromptCache = true }, false, "", ""},
		"effort":                {func(c *ClientConfig) { c.Effort = "high" }, false, `{"effort":"high","summary":"auto"}`, `"session-1"`},
		"effort of a summary":   {func(c *ClientConfig) { c.Effort = "xhigh" }, true, `{"effort":"low","summary":"auto"}`, `"session-1"`},
		"less than low remains": {func(c *ClientConfig) { c.Effort = "minimal" }, true, `{"effort":"minimal","summary":"auto"}`, `"session-1"`},
		"off":                   {func(c *ClientConfig) { c.Effort = "off" }, false, `{"effort":"none"}`, `"session-1"`},
		"off in a summary":      {func(c *ClientConfig) { c.Effort = "off" }, true, `{"effort":"none"}`, `"session-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatStream(responsesText("ok")))
			r := chatUserTurn("Hi.")
			r.OneShot = tt.oneShot
			if _, _, err := chatSample(t, begin(t, wireOf(t, s, "responses", tt.change), r)); err != nil {
				t.Fatal(err)
			}
			body := sentJSON(t, s.sent()[0])
			wantJSON(t, "reasoning", body["reasoning"], tt.reasoning)
			wantJSON(t, "prompt_cache_key", body["prompt_cache_key"], tt.hint)
		})
	}
}

func TestResponsesReadsAnswers(t *testing.T) {
	usage := &Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 64}
	call := []tools.Call{{ID: "a", Name: "read", Input: chatInput(`{"path":"x"}`)}}
	for name, tt := range map[string]struct {
		body   string
		want   step
		pieces string
	}{
		"text": {responsesText("Hello"), step{Text: "Hello", Stop: StopEnd, RawStop: "completed", Usage: usage, AnswerTokens: 15}, "Hello"},
		"reasoning, text and a call": {
			events(responsesThinking, responsesThought, responsesDelta("So."), responsesMessage("So."), responsesCallBegins, responsesCall("a", "read", `{"path":"x"}`), responsesEnd),
			step{Text: "So.", Reasoning: 7, Calls: call, Stop: StopToolCalls, RawStop: "completed", Usage: usage, AnswerTokens: 20},
			"<I look.>So.",
		},
		"unknown events and items": {
			events(`{"type":"codex.rate_limits","limits":{}}`, `{"type":"response.output_item.done","item":{"type":"whim","id":"w"}}`, responsesMessage("Hi"), responsesEnd),
			step{Text: "Hi", Stop: StopEnd, RawStop: "completed", Usage: usage, AnswerTokens: 15},
			"",
		},
		"no blank line at the end": {
			strings.TrimRight(responsesText("Hi"), "\n"),
			step{Text: "Hi", Stop: StopEnd, RawStop: "completed", Usage: usage, AnswerTokens: 15},
			"Hi",
		},
		"refusal": {
			events(`{"type":"response.refusal.delta","delta":"I won't."}`, `{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I won't."}]}}`, responsesEnd),
			step{Text: "I won't.", Stop: StopEnd, RawStop: "completed", Usage: usage, AnswerTokens: 15},
			"I won't.",
		},
		"length in a text": {
			events(responsesDelta("Half"), responsesIncomplete("max_output_tokens")),
			step{Text: "Half", Stop: StopLength, RawStop: "max_output_tokens", Usage: usage},
			"Half",
		},
		"length in a call": {
			events(responsesCallBegins, responsesIncomplete("max_output_tokens")),
			step{CutCalls: 1, Stop: StopLength, RawStop: "max_output_tokens", Usage: usage},
			"",
		},
		"filter after a call": {
			events(responsesCallBegins, responsesCall("a", "read", `{"pa`), responsesIncomplete("content_filter")),
			step{CutCalls: 1, Stop: StopRefusal, RawStop: "content_filter", Usage: usage},
			"",
		},
		"window full":           {events(responsesIncomplete("model_context_window_exceeded")), step{Stop: StopContextWindow, RawStop: "model_context_window_exceeded", Usage: usage}, ""},
		"nothing but reasoning": {events(responsesThought, responsesEnd), step{Stop: StopEnd, RawStop: "completed", Usage: usage}, ""},
		"arguments that are no object": {
			events(responsesCall("a", "read", `{"path":`), responsesEnd),
			step{Calls: []tools.Call{{ID: "a", Name: "read", Input: chatInput(`{"` + InvalidInputKey + `":"{\"path\":"}`)}}, Stop: StopToolCalls, RawStop: "completed", Usage: usage, AnswerTokens: 15},
			"",
		},
		"two calls with one id": {
			events(responsesCall("a", "read", `{"path":"x"}`), responsesCall("a", "list", `{}`), responsesEnd),
			step{Calls: []tools.Call{call[0], {ID: "call_2", Name: "list", Input: chatInput(`{}`)}}, Stop: StopToolCalls, RawStop: "completed", Usage: usage, AnswerTokens: 15},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnswer(t, wireOf(t, newChatServer(t, chatStream(tt.body)), "responses"), tt.want, tt.pieces)
		})
	}
}

func TestResponsesNeverTakesABrokenAnswerForASuccess(t *testing.T) {
	begun := events(responsesDelta("Hi"))
	failed := func(code, message string) http.HandlerFunc {
		return chatStream(begun + events(fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":%q}}}`, code, message)))
	}
	const overflow = "Your input exceeds the context window of this model."
	for name, b := range map[string]brokenAnswer{
		"clean cut":                {chatStream(begun), apierror.KindTransient, "before its end"},
		"cut after the last item":  {chatStream(begun + events(responsesMessage("Hi"))), apierror.KindTransient, "before its end"},
		"reset":                    {torn("text/event-stream", begun), apierror.KindTransient, "connection was closed"},
		"half an event":            {chatStream(begun + "event: response.completed\ndata: {\"type\":\"respo\n\n"), apierror.KindTransient, "could not be read"},
		"half a line":              {chatStream(begun + "event: response.compl"), apierror.KindTransient, "before its end"},
		"failed: overflow":         {failed("context_length_exceeded", overflow), apierror.KindContextOverflow, "context window"},
		"failed: server":           {failed("server_error", "An error occurred while processing your request."), apierror.KindTransient, "processing"},
		"failed: rate":             {failed("rate_limit_exceeded", "Rate limit reached for gpt-5. Please try again in 11.054s."), apierror.KindRateLimit, "Rate limit"},
		"flat error: overflow":     {chatStream(begun + events(`{"type":"error","code":"context_length_exceeded","message":"`+overflow+`","param":"input"}`)), apierror.KindContextOverflow, "context window"},
		"flat error: server":       {chatStream(begun + events(`{"type":"error","code":"server_error","message":"The server had an error"}`)), apierror.KindTransient, "had an error"},
		"nested error: overflow":   {chatStream(begun + events(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"`+overflow+`"}}`)), apierror.KindContextOverflow, "context window"},
		"nested error: overloaded": {chatStream(begun + events(`{"type":"error","error":{"type":"server_error","message":"Our servers are overloaded"}}`)), apierror.KindTransient, "overloaded"},
		"detail keeps its status":  {chatReply(404, "application/json", `{"detail":"Not Found"}`), apierror.KindOther, "404"},
		"error as text":            {chatReply(500, "application/json", `{"error":"model runner crashed unexpectedly"}`), apierror.KindTransient, "crashed"},
	} {
		t.Run(name, func(t *testing.T) { wantBroken(t, "responses", b) })
	}
}

func TestResponsesReplaysReasoningWithWhatItLedTo(t *testing.T) {
	s := newChatServer(t,
		chatStream(events(responsesThought, responsesCall("a", "read", `{"path":"x"}`), responsesCall("b", "list", `{}`), strings.Replace(responsesThought, "rs_1", "rs_2", 1), responsesEnd)),
		chatStream(responsesText("ok")),
	)
	c := begin(t, wireOf(t, s, "responses"), chatUserTurn("Hi."))
	answer, _, err := chatSample(t, c)
	if err != nil {
		t.Fatal(err)
	}
	c.appendResults(chatResults(answer.Calls, "<output>"))
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "input", sentJSON(t, s.sent()[1])["input"], `[
  {"role": "user", "content": "Hi."},
  {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I look."}], "encrypted_content": "ENCRYPTED"},
  {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{\"path\":\"x\"}"},
  {"type": "function_call", "call_id": "b", "name": "list", "arguments": "{}"},
  {"type": "function_call_output", "call_id": "a", "output": "<output>"},
  {"type": "function_call_output", "call_id": "b", "output": "<output>"}
]`)
}

func TestResponsesReplayedReasoningCounts(t *testing.T) {
	long := strings.Repeat("QUJD", 4000)
	thought := strings.Replace(responsesThought, "ENCRYPTED", long, 1)
	s := newChatServer(t, chatStream(events(thought, responsesCall("a", "read", `{}`), responsesEnd)))
	c := begin(t, wireOf(t, s, "responses"), chatUserTurn("Hi."))
	before := c.estimate()
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	// Four bytes of base64 are three bytes of text, about a token.
	if got := c.estimate() - before; got < len(long)*3/16 || got > len(long)/3 {
		t.Errorf("%d bytes of encrypted reasoning count %d tokens", len(long), got)
	}
}

func TestResponsesRefusesABadBaseURL(t *testing.T) {
	for _, base := range []string{"localhost:8080", "ftp://host/v1", "http://host/v1?key=1"} {
		_, err := NewOpenAIResponsesClient(ClientConfig{Provider: "local", Model: "m", BaseURL: base, ContextWindow: 128000})
		if err == nil || !strings.Contains(err.Error(), "http://localhost:8080/v1") {
			t.Errorf("base URL %q: error %v does not show a good one", base, err)
		}
	}
}
