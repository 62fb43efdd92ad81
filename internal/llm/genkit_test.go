package llm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// Pieces of a stream of Gemini.
func geminiParts(parts ...string) string {
	return chatEvents(fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[%s]}}]}`, strings.Join(parts, ",")))
}

func geminiText(text string) string { return fmt.Sprintf(`{"text":%q}`, text) }

// geminiSign is a thought signature as it is on the wire.
func geminiSign(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func geminiCall(name, input, signature string) string {
	if signature == "" {
		return fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, name, input)
	}
	return fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s},"thoughtSignature":%q}`, name, input, geminiSign(signature))
}

func geminiFinish(reason string) string {
	return chatEvents(fmt.Sprintf(`{"candidates":[{"index":0,"finishReason":%q}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":15,"thoughtsTokenCount":5,"cachedContentTokenCount":64,"totalTokenCount":120}}`, reason))
}

func geminiAnswer(reason string, parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(geminiParts(p))
	}
	return b.String() + geminiFinish(reason)
}

func TestGeminiRequestHasItsShape(t *testing.T) {
	s := newChatServer(t, chatStream(geminiAnswer("STOP", geminiText("ok"))))
	c := begin(t, wireOf(t, s, "gemini"), turnRequest{System: "Be brief.", History: chatHistory, Specs: chatSpecs})
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()[0]
	body := sentJSON(t, sent)
	wantJSON(t, "contents", body["contents"], `[
  {"role": "user", "parts": [{"text": "Look & <see>."}]},
  {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "read", "args": {"path": "a.go"}}}, {"functionCall": {"name": "bad_name_"}}]},
  {"role": "user", "parts": [
    {"functionResponse": {"name": "read", "response": {"output": "package a"}}},
    {"functionResponse": {"name": "bad_name_", "response": {"error": "no such tool"}}}]},
  {"role": "model", "parts": [{"text": "Done."}]},
  {"role": "user", "parts": [{"text": "Thanks. Go on."}]}
]`)
	wantJSON(t, "generationConfig", body["generationConfig"], `{"maxOutputTokens": 4096, "candidateCount": 1}`)
	if sent.path != "/v1beta/models/model-1:streamGenerateContent" || sent.header.Get("X-Goog-Api-Key") != "key-1" || sent.header.Get("Authorization") != "" {
		t.Errorf("path %s, headers %v", sent.path, sent.header)
	}
}

func TestGeminiOffersToolsInTheirOrder(t *testing.T) {
	var specs []tools.Spec
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("tool_%02d", (i*7)%20)
		specs = append(specs, tools.Spec{Name: name, Description: "x", Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`)})
		want = append(want, name)
	}
	s := newChatServer(t, chatStream(geminiAnswer("STOP", geminiText("ok"))))
	client := wireOf(t, s, "gemini")
	for range 3 {
		if _, _, err := chatSample(t, begin(t, client, turnRequest{History: []Message{user("Hi.")}, Specs: specs})); err != nil {
			t.Fatal(err)
		}
	}
	for _, sent := range s.sent() {
		if string(sent.body) != string(s.sent()[0].body) {
			t.Fatal("equal input makes unequal requests")
		}
	}
	at := 0
	for _, name := range want {
		i := strings.Index(string(s.sent()[0].body[at:]), `"`+name+`"`)
		if i < 0 {
			t.Fatalf("%s is not offered in its place: %s", name, s.sent()[0].body)
		}
		at += i
	}
}

func TestGeminiRequestFollowsTheConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		effort  string
		oneShot bool
		want    string
	}{
		"plain":                  {"", false, ""},
		"level":                  {"high", false, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		"level in a summary":     {"high", true, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		"off":                    {"off", false, `{"thinkingBudget":0}`},
		"number":                 {"2000", false, `{"includeThoughts":true,"thinkingBudget":2000}`},
		"number above the limit": {"32000", false, `{"includeThoughts":true,"thinkingBudget":2048}`},
		"number in a summary":    {"32000", true, `{"includeThoughts":true,"thinkingBudget":512}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatStream(geminiAnswer("STOP", geminiText("ok"))))
			r := chatUserTurn("Hi.")
			r.OneShot = tt.oneShot
			if _, _, err := chatSample(t, begin(t, wireOf(t, s, "gemini", func(c *ClientConfig) { c.Effort = tt.effort }), r)); err != nil {
				t.Fatal(err)
			}
			config, _ := sentJSON(t, s.sent()[0])["generationConfig"].(map[string]any)
			wantJSON(t, "thinkingConfig", config["thinkingConfig"], tt.want)
		})
	}
}

func TestGeminiReadsAnswers(t *testing.T) {
	usage := &Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 64}
	read := func(id string) tools.Call {
		return tools.Call{ID: id, Name: "read", Input: chatInput(`{"path":"x"}`)}
	}
	for name, tt := range map[string]struct {
		body   string
		want   step
		pieces string
	}{
		"text":                     {geminiAnswer("STOP", geminiText("Hel"), geminiText("lo")), step{Text: "Hello", Stop: StopEnd, RawStop: "STOP", Usage: usage, AnswerTokens: 15}, "Hello"},
		"no blank line at the end": {strings.TrimRight(geminiAnswer("STOP", geminiText("Hi")), "\n"), step{Text: "Hi", Stop: StopEnd, RawStop: "STOP", Usage: usage, AnswerTokens: 15}, "Hi"},
		"thoughts, text and calls": {
			geminiAnswer("STOP", `{"text":"Hm.","thought":true}`, geminiText("So."), geminiCall("read", `{"path":"x"}`, "s"), geminiCall("read", `{"path":"x"}`, "")),
			step{Text: "So.", Reasoning: 3, Calls: []tools.Call{read("call_1"), read("call_2")}, Stop: StopToolCalls, RawStop: "STOP", Usage: usage, AnswerTokens: 15},
			"<Hm.>So.",
		},
		"call without input": {
			geminiAnswer("STOP", `{"functionCall":{"name":"list"}}`),
			step{Calls: []tools.Call{{ID: "call_1", Name: "list", Input: chatInput(`{}`)}}, Stop: StopToolCalls, RawStop: "STOP", Usage: usage, AnswerTokens: 15},
			"",
		},
		"length":         {geminiAnswer("MAX_TOKENS", geminiText("I wri"), geminiCall("read", `{}`, "")), step{Text: "I wri", CutCalls: 1, Stop: StopLength, RawStop: "MAX_TOKENS", Usage: usage}, "I wri"},
		"safety":         {geminiAnswer("SAFETY", geminiText("I"), geminiCall("read", `{}`, "")), step{Text: "I", CutCalls: 1, Stop: StopRefusal, RawStop: "SAFETY", Usage: usage}, "I"},
		"blocked prompt": {chatEvents(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":100}}`), step{Stop: StopRefusal, RawStop: "blocked", Usage: &Usage{InputTokens: 100}}, ""},
		"unknown reason": {geminiAnswer("WHIM", geminiText("a")), step{Text: "a", Stop: StopUnknown, RawStop: "WHIM", Usage: usage, AnswerTokens: 15}, "a"},
		"only thoughts":  {geminiAnswer("STOP", `{"text":"Hm.","thought":true}`), step{Reasoning: 3, Stop: StopEnd, RawStop: "STOP", Usage: usage, AnswerTokens: 15}, "<Hm.>"},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnswer(t, wireOf(t, newChatServer(t, chatStream(tt.body)), "gemini"), tt.want, tt.pieces)
		})
	}
}

func TestGeminiNeverTakesABrokenAnswerForASuccess(t *testing.T) {
	begun := geminiParts(geminiText("Hi"))
	inside := func(code int, status, message string) http.HandlerFunc {
		return chatStream(begun + chatEvents(fmt.Sprintf(`{"error":{"code":%d,"status":%q,"message":%q}}`, code, status, message)))
	}
	for name, b := range map[string]brokenAnswer{
		"clean cut":             {chatStream(begun), apierror.KindTransient, "before its end"},
		"reset":                 {torn("text/event-stream", begun), apierror.KindTransient, "connection was closed"},
		"half an event":         {chatStream(begun + "data: {\"candid"), apierror.KindTransient, ""},
		"half a line":           {chatStream(begun + "dat"), apierror.KindTransient, "could not be read"},
		"usage alone":           {chatStream(chatEvents(`{"usageMetadata":{"promptTokenCount":100}}`)), apierror.KindTransient, "could not be read"},
		"comments only":         {chatStream(":\n\n"), apierror.KindTransient, "could not be read"},
		"malformed call":        {chatStream(begun + geminiFinish("MALFORMED_FUNCTION_CALL")), apierror.KindTransient, "MALFORMED_FUNCTION_CALL"},
		"overloaded":            {inside(503, "UNAVAILABLE", "The model is overloaded."), apierror.KindTransient, "overloaded"},
		"overflow":              {inside(400, "INVALID_ARGUMENT", "The input token count (314175) exceeds the maximum number of tokens allowed (131072)."), apierror.KindContextOverflow, "314175"},
		"invalid":               {inside(400, "INVALID_ARGUMENT", "Please ensure that function call turn comes immediately after a user turn"), apierror.KindOther, "function call turn"},
		"key":                   {chatReply(400, "application/json", `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`), apierror.KindAuth, "API key not valid"},
		"overflow in a 500":     {chatReply(500, "application/json", `{"error":{"code":500,"message":"The input token count exceeds the maximum number of tokens allowed (1048576).","status":"INTERNAL"}}`), apierror.KindContextOverflow, "1048576"},
		"quota of another wire": {chatReply(402, "application/json", `{"error":{"message":"Insufficient credits"}}`), apierror.KindQuota, "credits"},
	} {
		t.Run(name, func(t *testing.T) { wantBroken(t, "gemini", b) })
	}
}

func TestGeminiReadsTheDetailsOfAQuota(t *testing.T) {
	body := func(quota, delay string) string {
		return fmt.Sprintf(`{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":%q}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":%q}]}}`, quota, delay)
	}
	for name, tt := range map[string]struct {
		body  string
		kinds []apierror.Kind
		wait  time.Duration
	}{
		"by the minute": {body("GenerateContentInputTokensPerModelPerMinute-FreeTier", "39s"), []apierror.Kind{apierror.KindRateLimit, apierror.KindRateLimitTokens}, 39 * time.Second},
		"by the day":    {body("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "39s"), []apierror.Kind{apierror.KindQuota}, 39 * time.Second},
	} {
		c := wireOf(t, newChatServer(t, chatReply(429, "application/json", tt.body)), "gemini")
		_, _, err := ask(t, c)
		e := c.adapter.classify(err)
		found := false
		for _, k := range tt.kinds {
			found = found || e.Kind == k
		}
		if !found || e.RetryAfter != tt.wait {
			t.Errorf("%s: %s, wait %v, want one of %v, %v", name, e.Kind, e.RetryAfter, tt.kinds, tt.wait)
		}
	}
}

func TestGeminiReplaysSignaturesAndKeepsTheOrder(t *testing.T) {
	s := newChatServer(t,
		chatStream(geminiAnswer("STOP", `{"text":"Hm.","thought":true}`, geminiText("I "), geminiText("look."), geminiCall("read", `{"path":"x"}`, "sig-1"), geminiCall("list", `{}`, ""))),
		chatStream(geminiAnswer("STOP", geminiText("ok"))),
	)
	c := begin(t, wireOf(t, s, "gemini"), chatUserTurn("Hi."))
	answer, _, err := chatSample(t, c)
	if err != nil {
		t.Fatal(err)
	}
	c.appendResults(chatResults(answer.Calls, "<output>"))
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "contents", sentJSON(t, s.sent()[1])["contents"], `[
  {"role": "user", "parts": [{"text": "Hi."}]},
  {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "read", "args": {"path": "x"}}, "thoughtSignature": "`+geminiSign("sig-1")+`"}, {"functionCall": {"name": "list"}}]},
  {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "<output>"}}}, {"functionResponse": {"name": "list", "response": {"output": "<output>"}}}]}
]`)
}

func TestGeminiAnswerOfNothingIsNotRecorded(t *testing.T) {
	s := newChatServer(t, chatStream(geminiAnswer("MAX_TOKENS", `{"text":"Hm.","thought":true}`)), chatStream(geminiAnswer("STOP", geminiText("ok"))))
	c := begin(t, wireOf(t, s, "gemini"), chatUserTurn("Hi."))
	before := c.estimate()
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	if c.estimate() != before {
		t.Errorf("the estimate went from %d to %d", before, c.estimate())
	}
}

func TestGeminiNeedsAKeyAndTakesNoneFromTheEnvironment(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "leak")
	t.Setenv("GOOGLE_API_KEY", "leak")
	_, err := NewGenkitClient(t.Context(), ClientConfig{Provider: "google", Model: "m", ContextWindow: 128000})
	if err == nil || !strings.Contains(err.Error(), "GEMINI_API_KEY") {
		t.Errorf("error %v does not say what to set", err)
	}
	// The credential that fails is not replaced by the environment's.
	s := newChatServer(t, chatStream(geminiAnswer("STOP", geminiText("ok"))))
	c := wireOf(t, s, "gemini", func(c *ClientConfig) {
		c.Credential = &chatCredential{token: func(string) (string, error) { return "", errors.New("the helper command failed") }}
	})
	_, _, err = ask(t, c)
	if e := c.adapter.classify(err); e == nil || e.Kind != apierror.KindAuth || len(s.sent()) != 0 {
		t.Errorf("error %v, %d requests", err, len(s.sent()))
	}
}

func TestGeminiClientsLeaveNoGoroutines(t *testing.T) {
	s := newChatServer(t, chatStream(geminiAnswer("STOP", geminiText("ok"))))
	wireOf(t, s, "gemini") // What the first one of a process leaves is known.
	ignored := goleak.IgnoreCurrent()
	for range 3 {
		wireOf(t, s, "gemini")
	}
	goleak.VerifyNone(t, ignored)
}
