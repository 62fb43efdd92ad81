package llm

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/go-cmp/cmp"

	"keen/internal/llm/apierror"
	"keen/internal/simulator"
	"keen/internal/tools"
)

// bedrockFrame encodes one message of a stream with the SDK's own encoder.
func bedrockFrame(payload string, headers ...string) string {
	var all eventstream.Headers
	for i := 0; i < len(headers); i += 2 {
		all.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, eventstream.Message{Headers: all, Payload: []byte(payload)}); err != nil {
		panic(err)
	}
	return b.String()
}

func bedrockEvent(name, payload string) string {
	return bedrockFrame(payload, ":message-type", "event", ":event-type", name, ":content-type", "application/json")
}

func bedrockException(name, message string) string {
	return bedrockFrame(fmt.Sprintf(`{"message":%q}`, message), ":message-type", "exception", ":exception-type", name, ":content-type", "application/json")
}

func bedrockDelta(index int, delta string) string {
	return bedrockEvent("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s}`, index, delta))
}

func bedrockText(index int, text string) string {
	return bedrockDelta(index, fmt.Sprintf(`{"text":%q}`, text))
}

func bedrockCallStart(index int, id, name string) string {
	return bedrockEvent("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, index, id, name))
}

func bedrockInput(index int, piece string) string {
	return bedrockDelta(index, fmt.Sprintf(`{"toolUse":{"input":%q}}`, piece))
}

func bedrockThought(index int, text, signature string) string {
	return bedrockDelta(index, fmt.Sprintf(`{"reasoningContent":{"text":%q}}`, text)) + bedrockDelta(index, fmt.Sprintf(`{"reasoningContent":{"signature":%q}}`, signature))
}

// bedrockAnswer is a whole stream.
func bedrockAnswer(stop string, pieces ...string) string {
	return bedrockEvent("messageStart", `{"role":"assistant"}`) + strings.Join(pieces, "") +
		bedrockEvent("messageStop", fmt.Sprintf(`{"stopReason":%q}`, stop)) +
		bedrockEvent("metadata", `{"usage":{"inputTokens":30,"outputTokens":20,"totalTokens":120,"cacheReadInputTokens":60,"cacheWriteInputTokens":10},"metrics":{"latencyMs":1}}`)
}

const bedrockStreamType = "application/vnd.amazon.eventstream"

func bedrockReply(body string) http.HandlerFunc { return chatReply(200, bedrockStreamType, body) }

func TestBedrockRequestHasItsShape(t *testing.T) {
	s := newChatServer(t, bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))))
	c := begin(t, wireOf(t, s, "bedrock", func(c *ClientConfig) { c.Model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0" }),
		turnRequest{System: "Be brief.", History: chatHistory, Specs: chatSpecs})
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()[0]
	wantJSON(t, "request", sentJSON(t, sent), `{
  "inferenceConfig": {"maxTokens": 4096},
  "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
  "messages": [
    {"role": "user", "content": [{"text": "Look & <see>."}]},
    {"role": "assistant", "content": [{"text": "I look."},
      {"toolUse": {"toolUseId": "call_000001", "name": "read", "input": {"path": "a.go"}}},
      {"toolUse": {"toolUseId": "call_000002", "name": "bad_name_", "input": {}}}]},
    {"role": "user", "content": [
      {"toolResult": {"toolUseId": "call_000001", "status": "success", "content": [{"text": "package a"}]}},
      {"toolResult": {"toolUseId": "call_000002", "status": "error", "content": [{"text": "no such tool"}]}}]},
    {"role": "assistant", "content": [{"text": "Done."}]},
    {"role": "user", "content": [{"text": "Thanks. Go on."}, {"cachePoint": {"type": "default"}}]}
  ],
  "toolConfig": {"tools": [
    {"toolSpec": {"name": "list", "description": "Lists files.", "inputSchema": {"json": {"type": "object"}}}},
    {"toolSpec": {"name": "read", "description": "Reads a file.", "inputSchema": {"json": {"type": "object", "required": ["path"],
      "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}}}}}
  ]}
}`)
	if !strings.Contains(sent.dump, "POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream") {
		t.Errorf("the path is %s", sent.path)
	}
	if auth := sent.header.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=test-key/") || !strings.Contains(auth, "/us-east-1/bedrock/") {
		t.Errorf("Authorization = %q", auth)
	}
}

func TestBedrockSetsCachePointsWhereTheModelKnowsThem(t *testing.T) {
	for model, want := range map[string]bool{
		"anthropic.claude-sonnet-4-20250514-v1:0":      true,
		"us.anthropic.claude-sonnet-5":                 true,
		"anthropic.claude-3-7-sonnet-20250219-v1:0":    true,
		"anthropic.claude-3-5-haiku-20241022-v1:0":     true,
		"anthropic.claude-3-5-sonnet-20241022-v2:0":    true,
		"amazon.nova-pro-v1:0":                         true,
		"eu.amazon.nova-lite-v1:0":                     true,
		"anthropic.claude-3-5-sonnet-20240620-v1:0":    false,
		"anthropic.claude-3-haiku-20240307-v1:0":       false,
		"anthropic.claude-v2:1":                        false,
		"anthropic.claude-instant-v1":                  false,
		"meta.llama3-3-70b-instruct-v1:0":              false,
		"deepseek.r1-v1:0":                             false,
		"arn:aws:bedrock:us-east-1:1:inference/x/abcd": false,
	} {
		for _, oneShot := range []bool{false, true} {
			s := newChatServer(t, bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))))
			r := chatUserTurn("Hi.")
			r.OneShot = oneShot
			if _, _, err := chatSample(t, begin(t, wireOf(t, s, "bedrock", func(c *ClientConfig) { c.Model = model }), r)); err != nil {
				t.Fatal(err)
			}
			points := strings.Count(string(s.sent()[0].body), "cachePoint")
			// A summary is asked for once, so nothing would read its cache.
			if wanted := want && !oneShot; wanted && points != 2 || !wanted && points != 0 {
				t.Errorf("%s, one-shot %v: %d cache points", model, oneShot, points)
			}
		}
	}
	s := newChatServer(t, bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))))
	if _, _, err := ask(t, wireOf(t, s, "bedrock", func(c *ClientConfig) {
		c.Model, c.Quirks.NoPromptCache = "anthropic.claude-sonnet-4-20250514-v1:0", true
	})); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(s.sent()[0].body, []byte("cachePoint")) {
		t.Error("a cache point is sent although prompt caching is off")
	}
}

func TestBedrockRequestFollowsTheConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		effort  string
		oneShot bool
		output  int
		want    string
	}{
		"plain":                  {"", false, 4096, ""},
		"level":                  {"high", false, 4096, `{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		"level in a summary":     {"high", true, 4096, ""},
		"off":                    {"off", false, 4096, ""},
		"number":                 {"2000", false, 4096, `{"thinking":{"type":"enabled","budget_tokens":2000}}`},
		"number above the limit": {"32000", false, 4096, `{"thinking":{"type":"enabled","budget_tokens":3072}}`},
		"no room to think":       {"2000", false, 1200, ""},
		"number in a summary":    {"2000", true, 4096, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))))
			r := chatUserTurn("Hi.")
			r.OneShot = tt.oneShot
			c := begin(t, wireOf(t, s, "bedrock", func(c *ClientConfig) { c.Effort = tt.effort }), r)
			if _, err := chatPrepare(t, c, requestLimits{Budget: 1 << 20, Output: tt.output}).sample(t.Context(), func(delta) {}); err != nil {
				t.Fatal(err)
			}
			wantJSON(t, "additionalModelRequestFields", sentJSON(t, s.sent()[0])["additionalModelRequestFields"], tt.want)
		})
	}
}

func TestBedrockReadsAnswers(t *testing.T) {
	usage := &Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 60, CacheWriteTokens: 10}
	hello := bedrockText(0, "Hello")
	call := func(id, path string) tools.Call {
		return tools.Call{ID: id, Name: "read", Input: chatInput(`{"path":"` + path + `"}`)}
	}
	for name, tt := range map[string]struct {
		body   string
		want   step
		pieces string
	}{
		"text": {bedrockAnswer("end_turn", hello), step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20}, "Hello"},
		"no report of usage": {
			hello + bedrockEvent("messageStop", `{"stopReason":"end_turn"}`),
			step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn"},
			"Hello",
		},
		"unknown events": {
			bedrockEvent("whim", `{}`) + bedrockAnswer("end_turn", bedrockEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"whim":{}}}`), hello),
			step{Text: "Hello", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20},
			"Hello",
		},
		"thinking, text and a call": {
			bedrockAnswer("tool_use", bedrockThought(0, "Hm.", "sig"), bedrockText(1, "So."), bedrockCallStart(2, "a", "read"), bedrockInput(2, `{"path"`), bedrockInput(2, `:"x"}`)),
			step{Text: "So.", Reasoning: 3, Calls: []tools.Call{call("a", "x")}, Stop: StopToolCalls, RawStop: "tool_use", Usage: usage, AnswerTokens: 20},
			"<Hm.>So.",
		},
		"blocks that take turns": {
			bedrockAnswer("tool_use", bedrockCallStart(0, "a", "read"), bedrockInput(0, `{"path"`), bedrockCallStart(1, "b", "read"), bedrockInput(1, `{"path":"y"}`), bedrockInput(0, `:"x"}`)),
			step{Calls: []tools.Call{call("a", "x"), call("b", "y")}, Stop: StopToolCalls, RawStop: "tool_use", Usage: usage, AnswerTokens: 20},
			"",
		},
		"numbers of blocks that make no sense": {
			bedrockAnswer("end_turn", bedrockText(-1, "a"), bedrockText(2000000000, "b")),
			step{Text: "ab", Stop: StopEnd, RawStop: "end_turn", Usage: usage, AnswerTokens: 20},
			"ab",
		},
		"call without input": {
			bedrockAnswer("tool_use", bedrockCallStart(0, "a", "list")),
			step{Calls: []tools.Call{{ID: "a", Name: "list", Input: chatInput(`{}`)}}, Stop: StopToolCalls, RawStop: "tool_use", Usage: usage, AnswerTokens: 20},
			"",
		},
		"length": {
			bedrockAnswer("max_tokens", bedrockThought(0, "Hm.", "sig"), bedrockText(1, "I wri"), bedrockCallStart(2, "a", "read"), bedrockInput(2, `{"pa`)),
			step{Text: "I wri", Reasoning: 3, CutCalls: 1, Stop: StopLength, RawStop: "max_tokens", Usage: usage},
			"<Hm.>I wri",
		},
		"guardrail":            {bedrockAnswer("guardrail_intervened", hello), step{Text: "Hello", Stop: StopRefusal, RawStop: "guardrail_intervened", Usage: usage}, "Hello"},
		"filter":               {bedrockAnswer("content_filtered", bedrockCallStart(0, "a", "read")), step{CutCalls: 1, Stop: StopRefusal, RawStop: "content_filtered", Usage: usage}, ""},
		"window full":          {bedrockAnswer("model_context_window_exceeded", hello), step{Text: "Hello", Stop: StopContextWindow, RawStop: "model_context_window_exceeded", Usage: usage}, "Hello"},
		"unknown reason":       {bedrockAnswer("whim", hello), step{Text: "Hello", Stop: StopUnknown, RawStop: "whim", Usage: usage, AnswerTokens: 20}, "Hello"},
		"nothing but thinking": {bedrockAnswer("end_turn", bedrockThought(0, "Hm.", "sig")), step{Reasoning: 3, Stop: StopEnd, RawStop: "end_turn", Usage: usage}, "<Hm.>"},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnswer(t, wireOf(t, newChatServer(t, bedrockReply(tt.body)), "bedrock"), tt.want, tt.pieces)
		})
	}
}

func TestBedrockNeverTakesABrokenAnswerForASuccess(t *testing.T) {
	begun := bedrockEvent("messageStart", `{"role":"assistant"}`) + bedrockText(0, "Hi")
	stop := bedrockEvent("messageStop", `{"stopReason":"end_turn"}`)
	garbled := []byte(stop)
	garbled[len(garbled)-6] ^= 1
	inside := func(name, message string) http.HandlerFunc {
		return bedrockReply(begun + bedrockException(name, message))
	}
	// typed answers with the header by which the SDK knows the exception.
	typed := func(status int, name, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amzn-Errortype", name)
			chatReply(status, "application/json", fmt.Sprintf(`{"message":%q}`, message))(w, r)
		}
	}
	const overflow = "Input is too long for requested model."
	for name, b := range map[string]brokenAnswer{
		"clean cut":                 {bedrockReply(begun), apierror.KindTransient, "before its end"},
		"reset":                     {torn(bedrockStreamType, begun), apierror.KindTransient, ""},
		"half a frame":              {bedrockReply(begun + stop[:len(stop)/2]), apierror.KindTransient, ""},
		"reset in a frame":          {torn(bedrockStreamType, begun+stop[:len(stop)/2]), apierror.KindTransient, ""},
		"bad checksum":              {bedrockReply(begun + string(garbled)), apierror.KindTransient, ""},
		"throttled":                 {inside("throttlingException", "Too many requests, please wait before trying again."), apierror.KindRateLimit, "Too many requests"},
		"tokens throttled":          {inside("throttlingException", "Too many tokens, please wait before trying again."), apierror.KindRateLimitTokens, "Too many tokens"},
		"overflow":                  {inside("validationException", "The model returned the following errors: "+overflow), apierror.KindContextOverflow, overflow},
		"model stream":              {inside("modelStreamErrorException", "The model stream failed."), apierror.KindTransient, "stream failed"},
		"internal":                  {inside("internalServerException", "The system encountered an unexpected error."), apierror.KindTransient, "unexpected error"},
		"unavailable":               {inside("serviceUnavailableException", "Bedrock is unable to process your request."), apierror.KindTransient, "unable"},
		"unmodelled error":          {bedrockReply(begun + bedrockFrame("", ":message-type", "error", ":error-code", "InternalFailure", ":error-message", "it broke")), apierror.KindTransient, "it broke"},
		"refused: overflow":         {typed(400, "ValidationException", overflow), apierror.KindContextOverflow, overflow},
		"refused without a type":    {chatReply(400, "application/json", `{"message":"`+overflow+`"}`), apierror.KindContextOverflow, overflow},
		"refused: numbers":          {typed(400, "ValidationException", "prompt is too long: 209303 tokens > 200000 maximum"), apierror.KindContextOverflow, "209303"},
		"refused: other":            {typed(400, "ValidationException", "messages.1.content: roles must alternate"), apierror.KindOther, "alternate"},
		"refused: no access":        {typed(403, "AccessDeniedException", "You don't have access to the model with the specified model ID."), apierror.KindAuth, "access"},
		"refused: expired token":    {typed(403, "ExpiredTokenException", "The security token included in the request is expired"), apierror.KindAuth, "expired"},
		"refused: not ready":        {typed(429, "ModelNotReadyException", "Model is not ready for inference."), apierror.KindRateLimit, "not ready"},
		"refused: throttled":        {typed(429, "ThrottlingException", "Too many requests, please wait before trying again."), apierror.KindRateLimit, "Too many requests"},
		"refused: no such model":    {typed(404, "ResourceNotFoundException", "Model not found."), apierror.KindOther, "not found"},
		"refused: max tokens alone": {typed(400, "ValidationException", "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."), apierror.KindMaxOutput, "4096"},
	} {
		t.Run(name, func(t *testing.T) { wantBroken(t, "bedrock", b) })
	}
}

func TestBedrockReplaysSignedThinkingInItsPlace(t *testing.T) {
	s := newChatServer(t,
		bedrockReply(bedrockAnswer("tool_use", bedrockThought(0, "Hm.", "sig-1"), bedrockDelta(1, `{"reasoningContent":{"redactedContent":"UkVEQUNURUQ="}}`),
			bedrockText(2, "\n\n"), bedrockText(3, "So."), bedrockCallStart(4, "a", "read"), bedrockInput(4, `{"limit":12345678901234}`), bedrockThought(5, "Later.", "sig-2"))),
		bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))),
	)
	c := begin(t, wireOf(t, s, "bedrock"), chatUserTurn("Hi."))
	answer, _, err := chatSample(t, c)
	if err != nil {
		t.Fatal(err)
	}
	c.appendResults(chatResults(answer.Calls, ""))
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "messages", sentJSON(t, s.sent()[1])["messages"], `[
  {"role": "user", "content": [{"text": "Hi."}]},
  {"role": "assistant", "content": [
    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig-1"}}}, {"reasoningContent": {"redactedContent": "UkVEQUNURUQ="}},
    {"text": "So."}, {"toolUse": {"toolUseId": "a", "name": "read", "input": {"limit": 12345678901234}}}]},
  {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "status": "success", "content": [{"text": "(empty)"}]}}]}
]`)
	if !bytes.Contains(s.sent()[1].body, []byte("12345678901234")) {
		t.Error("a number lost its digits")
	}
}

// bedrockEnvironment is an environment without any AWS settings.
func bedrockEnvironment(t *testing.T) (home string) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION",
		"AWS_DEFAULT_REGION", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE",
	} {
		t.Setenv(name, "")
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(home, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(home, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return home
}

func TestBedrockPrefersWhatWasConfiguredToTheEnvironment(t *testing.T) {
	home := bedrockEnvironment(t)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "leaked-bearer")
	t.Setenv("AWS_ACCESS_KEY_ID", "leaked-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "leaked-secret")
	credentials := "[work]\naws_access_key_id = work-id\naws_secret_access_key = work-secret\n"
	if err := os.WriteFile(filepath.Join(home, "credentials"), []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		aws  AWSConfig
		want string
	}{
		"credentials": {AWSConfig{Region: "us-east-1", Credentials: staticAWS{}}, "AWS4-HMAC-SHA256 Credential=test-key/"},
		"profile":     {AWSConfig{Region: "us-east-1", Profile: "work"}, "AWS4-HMAC-SHA256 Credential=work-id/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))))
			if _, _, err := ask(t, wireOf(t, s, "bedrock", func(c *ClientConfig) { c.AWS = tt.aws })); err != nil {
				t.Fatal(err)
			}
			sent := s.sent()[0]
			if got := sent.header.Get("Authorization"); !strings.HasPrefix(got, tt.want) || strings.Contains(sent.dump, "leaked") {
				t.Errorf("Authorization = %q", got)
			}
		})
	}
}

func TestBedrockKeyIsABearerOverTLSAndOnThisMachine(t *testing.T) {
	bedrockEnvironment(t)
	for name, start := range map[string]func(http.Handler) *httptest.Server{"loopback": httptest.NewServer, "TLS": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			answers := []http.HandlerFunc{chatReply(401, "application/json", `{"message":"expired"}`), bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok")))}
			server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.Header.Get("Authorization"))
				answers[min(len(sent), len(answers))-1](w, r)
			}))
			defer server.Close()
			credential := &chatCredential{token: func(rejected string) (string, error) {
				if rejected == "" {
					return "old", nil
				}
				return "new", nil
			}}
			c := mustClient(t)(NewBedrockClient(t.Context(), ClientConfig{
				Provider: "test", Model: "model-1", BaseURL: server.URL, ContextWindow: 128000, HTTPClient: server.Client(),
				Credential: credential, AWS: AWSConfig{Region: "us-east-1"},
			}))
			if _, _, err := ask(t, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Bearer old", "Bearer new"}, sent); diff != "" {
				t.Errorf("secrets sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBedrockKeyRunsATurnOnThisMachine(t *testing.T) {
	bedrockEnvironment(t)
	server, err := simulator.New(simulator.Options{Script: simulator.NewSequence(read(1), simulator.Text("Done.")), Key: "test-key", Window: 128000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, base := range []string{server.URL(), strings.Replace(server.URL(), "127.0.0.1", "localhost", 1)} {
		c := mustClient(t)(NewBedrockClient(t.Context(), ClientConfig{
			Provider: "test", Model: "model-1", BaseURL: base, ContextWindow: 128000, Credential: testKey("test-key"), Retry: testRetry, AWS: AWSConfig{Region: "us-east-1"},
		}))
		if base == server.URL() {
			wantDone(t, runTurn(t, c, parts(), user(task)))
			continue
		}
		if _, _, err := ask(t, c); err == nil || strings.Contains(err.Error(), "unencrypted") {
			t.Errorf("%s: %v", base, err) // The script is at its end, which says that the request came.
		}
	}
}

func TestBedrockKeyIsNotSentUnencryptedOverANetwork(t *testing.T) {
	bedrockEnvironment(t)
	for _, base := range []string{
		"http://192.0.2.1", "http://10.0.0.5:8080", "http://bedrock-runtime.us-east-1.amazonaws.com", "http://localhost.example.com",
		"http://127.0.0.1.example.com", "http://[2001:db8::1]:80", "http://user@192.0.2.1", "http://127.0.0.1@192.0.2.1",
	} {
		_, err := NewBedrockClient(t.Context(), ClientConfig{
			Provider: "test", Model: "model-1", BaseURL: base, ContextWindow: 128000, Credential: testKey("key-1"), AWS: AWSConfig{Region: "us-east-1"},
		})
		if err == nil || !strings.Contains(err.Error(), "unencrypted") || !strings.Contains(err.Error(), "https") {
			t.Errorf("%s: error %v does not say why and what to do", base, err)
		}
	}
	// Address and key may come from the environment, past the configuration.
	t.Setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://192.0.2.1")
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "key-2")
	for _, credential := range []Credential{nil, testKey("key-1")} {
		c := mustClient(t)(NewBedrockClient(t.Context(), ClientConfig{
			Provider: "test", Model: "model-1", ContextWindow: 128000, Credential: credential, HTTPClient: &http.Client{Transport: unreachable{t}}, AWS: AWSConfig{Region: "us-east-1"},
		}))
		_, _, err := ask(t, c)
		if e := c.adapter.classify(err); e == nil || e.Kind != apierror.KindOther || !strings.Contains(e.Error(), "unencrypted") {
			t.Errorf("credential %v: %v", credential, err)
		}
	}
}

// unreachable is a network that nothing may be sent to.
type unreachable struct{ t *testing.T }

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	u.t.Errorf("a request was sent to %s", r.URL)
	return nil, io.ErrUnexpectedEOF
}

func TestBedrockWithoutCredentialsSaysSoAtOnce(t *testing.T) {
	bedrockEnvironment(t)
	s := newChatServer(t, bedrockReply(bedrockAnswer("end_turn", bedrockText(0, "ok"))))
	c := wireOf(t, s, "bedrock", func(c *ClientConfig) { c.AWS.Credentials = nil })
	events := runTurn(t, c, nil, user("Hi."))
	end := last(events)
	if count(events, StreamEventTypeRetry) != 0 || end.Type != StreamEventTypeError || !strings.Contains(end.Err.Error(), "aws sso login") {
		t.Errorf("events %v, error %v", kinds(events), end.Err)
	}
	if len(s.sent()) != 0 {
		t.Error("a request was sent without credentials")
	}
}

func TestBedrockNeedsARegion(t *testing.T) {
	bedrockEnvironment(t)
	_, err := NewBedrockClient(t.Context(), ClientConfig{Provider: "bedrock", Model: "m", ContextWindow: 128000})
	if err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("error %v does not say what to set", err)
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	if _, err := NewBedrockClient(t.Context(), ClientConfig{Provider: "bedrock", Model: "m", ContextWindow: 128000}); err != nil {
		t.Error(err)
	}
}

func TestBedrockUnknownProfileIsExplained(t *testing.T) {
	bedrockEnvironment(t)
	_, err := NewBedrockClient(t.Context(), ClientConfig{Provider: "bedrock", Model: "m", ContextWindow: 128000, AWS: AWSConfig{Region: "us-east-1", Profile: "nobody"}})
	if err == nil || !slices.Contains(strings.Fields(err.Error()), "nobody") {
		t.Errorf("error %v does not name the profile", err)
	}
}
