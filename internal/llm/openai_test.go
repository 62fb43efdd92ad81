package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// chatServer answers requests in order with its replies, the last one again
// and again, and keeps what was sent.
type chatServer struct {
	*httptest.Server

	mu       sync.Mutex
	replies  []http.HandlerFunc
	requests []chatSent
}

// chatSent is a request as it arrived.
type chatSent struct {
	header http.Header
	path   string
	dump   string
	body   []byte
}

func newChatServer(t *testing.T, replies ...http.HandlerFunc) *chatServer {
	t.Helper()
	s := &chatServer{replies: replies}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, chatSent{header: r.Header, path: r.URL.Path, dump: string(dump), body: body})
		reply := s.replies[min(len(s.requests), len(s.replies))-1]
		s.mu.Unlock()
		reply(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *chatServer) sent() []chatSent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// adapter returns an adapter that talks to the server.
func (s *chatServer) adapter(t *testing.T, change ...func(*ClientConfig)) *chatAdapter {
	t.Helper()
	cfg := ClientConfig{Provider: "test", Model: "model-1", BaseURL: s.URL + "/v1", ContextWindow: 128000, HTTPClient: s.Client()}
	for _, f := range change {
		f(&cfg)
	}
	a, err := newChatAdapter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// chatStream replies with an event stream of the given bytes.
func chatStream(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

// chatChunks replies with a stream of one event for each chunk and the end
// marker.
func chatChunks(chunks ...string) http.HandlerFunc {
	return chatStream(chatEvents(chunks...) + "data: [DONE]\n\n")
}

func chatEvents(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

func chatReply(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Chunks of a stream.
func chatDelta(fields string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}`
}

func chatText(text string) string { return chatDelta(fmt.Sprintf(`"content":%q`, text)) }

func chatFinish(reason string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

func chatCallChunk(id, name, input string) string {
	return chatDelta(fmt.Sprintf(`"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]`, id, name, input))
}

const chatUsageChunk = `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5}}}`

var chatWide = requestLimits{Budget: 1 << 30, Output: 4096}

func chatStart(t *testing.T, a *chatAdapter, r turnRequest) conversation {
	t.Helper()
	c, err := a.start(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func chatPrepare(t *testing.T, c conversation, l requestLimits) prepared {
	t.Helper()
	p, err := c.prepare(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// chatSample sends the next request and returns the answer with the pieces
// that were emitted.
func chatSample(t *testing.T, c conversation) (step, string, error) {
	t.Helper()
	var pieces strings.Builder
	s, err := chatPrepare(t, c, chatWide).sample(t.Context(), func(d delta) {
		if d.Reasoning != "" {
			fmt.Fprintf(&pieces, "<%s>", d.Reasoning)
		}
		pieces.WriteString(d.Text)
	})
	return s, pieces.String(), err
}

func chatUserTurn(text string) turnRequest {
	return turnRequest{System: "Be brief.", History: []Message{{Role: RoleUser, Content: text}}, Specs: chatSpecs, SessionID: "session-1"}
}

var chatSpecs = []tools.Spec{
	{Name: "list", Description: "Lists files.", Schema: json.RawMessage(`{"type": "object"}`)},
	{Name: "read", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1}}}`)},
}

// chatHistory is a conversation with text, two calls in one step, and a newer
// user message.
var chatHistory = []Message{
	{Role: RoleUser, Content: "Look & <see>."},
	{Role: RoleAssistant, Content: "I look.Done.", ToolActivities: []HistoricalToolActivity{
		{TextOffset: 7, Tool: "read", Input: json.RawMessage(`{"path":"a.go"}`), Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: "package a"},
		{TextOffset: 7, Tool: "bad name!", Status: tools.StatusError, HasRawOutput: true, RawOutput: "no such tool"},
	}},
	{Role: RoleUser, Content: "Thanks. Go on."},
}

func TestChatRequestHasTheShapeServersExpect(t *testing.T) {
	s := newChatServer(t, chatChunks(chatText("ok"), chatFinish("stop")))
	c := chatStart(t, s.adapter(t), turnRequest{System: "Be brief.", History: chatHistory, Specs: chatSpecs})
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "messages": [
    {"content": "Be brief.", "role": "system"},
    {"content": "Look & <see>.", "role": "user"},
    {"content": "I look.", "tool_calls": [
      {"id": "call_000001", "function": {"arguments": "{\"path\":\"a.go\"}", "name": "read"}, "type": "function"},
      {"id": "call_000002", "function": {"arguments": "{}", "name": "bad_name_"}, "type": "function"}
    ], "role": "assistant"},
    {"content": "package a", "tool_call_id": "call_000001", "role": "tool"},
    {"content": "no such tool", "tool_call_id": "call_000002", "role": "tool"},
    {"content": "Done.", "role": "assistant"},
    {"content": "Thanks. Go on.", "role": "user"}
  ],
  "model": "model-1",
  "max_tokens": 4096,
  "stream_options": {"include_usage": true},
  "tools": [
    {"function": {"name": "list", "description": "Lists files.", "parameters": {"properties": {}, "type": "object"}}, "type": "function"},
    {"function": {"name": "read", "description": "Reads a file.", "parameters": {
      "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
      "required": ["path"], "type": "object"}}, "type": "function"}
  ],
  "stream": true
}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(want)); err != nil {
		t.Fatal(err)
	}
	got := s.sent()[0]
	if diff := cmp.Diff(compact.String(), strings.TrimSpace(string(got.body))); diff != "" {
		t.Errorf("request body (-want +got):\n%s", diff)
	}
	if got.path != "/v1/chat/completions" {
		t.Errorf("path = %s", got.path)
	}
}

func TestChatRequestFollowsTheConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*ClientConfig)
		oneShot bool
		want    map[string]any // nil: the field is absent
	}{
		"plain": {func(*ClientConfig) {}, false, map[string]any{
			"max_tokens": 4096.0, "max_completion_tokens": nil, "prompt_cache_key": nil, "reasoning_effort": nil,
			"stream_options": map[string]any{"include_usage": true}, "stream": true,
		}},
		"no stream options":     {func(c *ClientConfig) { c.Quirks.NoStreamOptions = true }, false, map[string]any{"stream_options": nil, "stream": true}},
		"newer output limit":    {func(c *ClientConfig) { c.Quirks.MaxCompletionTokens = true }, false, map[string]any{"max_tokens": nil, "max_completion_tokens": 4096.0}},
		"cache key":             {func(c *ClientConfig) { c.Quirks.PromptCacheKey = true }, false, map[string]any{"prompt_cache_key": "session-1"}},
		"effort":                {func(c *ClientConfig) { c.Effort = "high" }, false, map[string]any{"reasoning_effort": "high"}},
		"effort of a summary":   {func(c *ClientConfig) { c.Effort = "high" }, true, map[string]any{"reasoning_effort": "low"}},
		"less than low remains": {func(c *ClientConfig) { c.Effort = "none" }, true, map[string]any{"reasoning_effort": "none"}},
		"no effort, no field":   {func(*ClientConfig) {}, true, map[string]any{"reasoning_effort": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatChunks(chatText("ok"), chatFinish("stop")))
			r := chatUserTurn("Hi.")
			r.OneShot = tt.oneShot
			if _, _, err := chatSample(t, chatStart(t, s.adapter(t, tt.change), r)); err != nil {
				t.Fatal(err)
			}
			var body map[string]any
			if err := json.Unmarshal(s.sent()[0].body, &body); err != nil {
				t.Fatal(err)
			}
			for field, want := range tt.want {
				if diff := cmp.Diff(want, body[field]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", field, diff)
				}
			}
		})
	}
}

func TestChatKnowsOpenAIsOwnHost(t *testing.T) {
	for base, want := range map[string]Quirks{
		"":                              {MaxCompletionTokens: true, PromptCacheKey: true},
		"https://api.openai.com/v1":     {MaxCompletionTokens: true, PromptCacheKey: true},
		"http://localhost:11434/v1":     {},
		"https://api.openai.com.evil/x": {},
	} {
		a, err := newChatAdapter(ClientConfig{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if a.quirks != want {
			t.Errorf("quirks of %q = %+v, want %+v", base, a.quirks, want)
		}
	}
	a, err := newChatAdapter(ClientConfig{Quirks: Quirks{NoPromptCache: true}})
	if err != nil || a.quirks.PromptCacheKey {
		t.Errorf("quirks with prompt caching off = %+v, error %v", a.quirks, err)
	}
}

func TestNewOpenAIClientRefusesABadBaseURL(t *testing.T) {
	for _, base := range []string{"localhost:8080", "ftp://host/v1", "https:///v1", "http://host/v1?key=1", "http://[::1/v1", "host"} {
		_, err := NewOpenAIClient(ClientConfig{Provider: "local", Model: "m", BaseURL: base, ContextWindow: 128000})
		if err == nil || !strings.Contains(err.Error(), "http://localhost:8080/v1") {
			t.Errorf("base URL %q: error %v does not show a good one", base, err)
		}
	}
	if _, err := NewOpenAIClient(ClientConfig{Provider: "local", Model: "m", BaseURL: "http://localhost:1/v1", ContextWindow: 128000}); err != nil {
		t.Error(err)
	}
}

func TestChatLimits(t *testing.T) {
	for _, tt := range []struct{ configured, want int }{{0, 8192}, {500, 500}, {64000, 64000}} {
		a, err := newChatAdapter(ClientConfig{ContextWindow: 32768, MaxOutputTokens: tt.configured})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := a.limits(), (limits{Window: 32768, Output: tt.want}); got != want {
			t.Errorf("limits with %d configured = %+v, want %+v", tt.configured, got, want)
		}
	}
}

func TestChatRefusesAToolWithoutAnObjectSchema(t *testing.T) {
	a, err := newChatAdapter(ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{"[]", "null", "{"} {
		r := chatUserTurn("Hi.")
		r.Specs = []tools.Spec{{Name: "odd", Schema: json.RawMessage(schema)}}
		if _, err := a.start(r); err == nil || !strings.Contains(err.Error(), "odd") {
			t.Errorf("schema %s: error %v does not name the tool", schema, err)
		}
	}
}

// chatCredential counts what is asked of it.
type chatCredential struct {
	token func(rejected string) (string, error)
	asked []string
}

func (c *chatCredential) Token(_ context.Context, rejected string) (string, error) {
	c.asked = append(c.asked, rejected)
	return c.token(rejected)
}

func TestChatSendsHeadersAndCredential(t *testing.T) {
	key := func(string) (string, error) { return "key-1", nil }
	for name, tt := range map[string]struct {
		credential Credential
		headers    map[string]string
		want       []string // Authorization
	}{
		"none":             {nil, nil, nil},
		"key":              {&chatCredential{token: key}, nil, []string{"Bearer key-1"}},
		"empty key":        {&chatCredential{token: func(string) (string, error) { return "", nil }}, nil, nil},
		"header":           {nil, map[string]string{"authorization": "Basic x"}, []string{"Basic x"}},
		"key beats header": {&chatCredential{token: key}, map[string]string{"Authorization": "Basic x"}, []string{"Bearer key-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatChunks(chatText("ok"), chatFinish("stop")))
			a := s.adapter(t, func(c *ClientConfig) {
				c.Credential = tt.credential
				c.Headers = map[string]string{"X-Title": "keen", "HTTP-Referer": "r"}
				for k, v := range tt.headers {
					c.Headers[k] = v
				}
			})
			if _, _, err := chatSample(t, chatStart(t, a, chatUserTurn("Hi."))); err != nil {
				t.Fatal(err)
			}
			header := s.sent()[0].header
			if diff := cmp.Diff(tt.want, header.Values("Authorization")); diff != "" {
				t.Errorf("Authorization (-want +got):\n%s", diff)
			}
			if header.Get("X-Title") != "keen" || header.Get("Http-Referer") != "r" || header.Get("Accept") != "text/event-stream" {
				t.Errorf("headers = %v", header)
			}
		})
	}
}

func TestChatRenewsARefusedCredentialOnce(t *testing.T) {
	refuse := chatReply(http.StatusUnauthorized, "application/json", `{"error":{"message":"expired","code":"invalid_api_key"}}`)
	answer := chatChunks(chatText("ok"), chatFinish("stop"))
	renew := func(rejected string) (string, error) {
		if rejected == "" {
			return "old", nil
		}
		return "new", nil
	}
	fixed := func(rejected string) (string, error) {
		if rejected != "" {
			return "", errors.New("a fixed key cannot be renewed")
		}
		return "old", nil
	}
	for name, tt := range map[string]struct {
		token     func(string) (string, error)
		replies   []http.HandlerFunc
		wantSent  []string
		wantAsked []string
		wantKind  apierror.Kind
	}{
		"renewed":       {renew, []http.HandlerFunc{refuse, answer}, []string{"Bearer old", "Bearer new"}, []string{"", "old"}, ""},
		"refused again": {renew, []http.HandlerFunc{refuse}, []string{"Bearer old", "Bearer new"}, []string{"", "old"}, apierror.KindAuth},
		"fixed":         {fixed, []http.HandlerFunc{refuse}, []string{"Bearer old"}, []string{"", "old"}, apierror.KindAuth},
		"none":          {func(string) (string, error) { return "", errors.New("run keen login") }, []http.HandlerFunc{answer}, nil, []string{""}, apierror.KindAuth},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, tt.replies...)
			credential := &chatCredential{token: tt.token}
			a := s.adapter(t, func(c *ClientConfig) { c.Credential = credential })
			_, _, err := chatSample(t, chatStart(t, a, chatUserTurn("Hi.")))
			var kind apierror.Kind
			if e := a.classify(err); e != nil {
				kind = e.Kind
			}
			if kind != tt.wantKind {
				t.Errorf("error %v is %q, want %q", err, kind, tt.wantKind)
			}
			var sent []string
			for _, r := range s.sent() {
				sent = append(sent, r.header.Get("Authorization"))
				if !bytes.Equal(r.body, s.sent()[0].body) || len(r.body) == 0 {
					t.Errorf("body changed when it was sent again: %s", r.body)
				}
			}
			if diff := cmp.Diff(tt.wantSent, sent); diff != "" {
				t.Errorf("secrets sent (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantAsked, credential.asked); diff != "" {
				t.Errorf("secrets refused (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatTakesNothingFromTheEnvironment(t *testing.T) {
	const leak = "leaked-value"
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
		"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AZURE_OPENAI_API_KEY",
	} {
		t.Setenv(name, leak)
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/"+leak)
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: "+leak)
	s := newChatServer(t, chatChunks(chatText("ok"), chatFinish("stop")))
	if _, _, err := chatSample(t, chatStart(t, s.adapter(t), chatUserTurn("Hi."))); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()
	if len(sent) != 1 || strings.Contains(sent[0].dump, leak) || sent[0].header.Get("Authorization") != "" {
		t.Errorf("something of the environment was sent: %v", sent)
	}
}

func chatInput(s string) json.RawMessage { return json.RawMessage(s) }

func TestChatReadsAnswers(t *testing.T) {
	stop := chatFinish("stop")
	read := func(id, path string) tools.Call {
		return tools.Call{ID: id, Name: "read", Input: chatInput(`{"path":"` + path + `"}`)}
	}
	usage := &Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 64}
	longID := strings.Repeat("x", 65)
	for name, tt := range map[string]struct {
		reply  http.HandlerFunc
		want   step
		pieces string
	}{
		"text and usage": {
			chatChunks(chatDelta(`"role":"assistant","content":""`), chatText("Hel"), chatText("lo"), stop, chatUsageChunk),
			step{Text: "Hello", Stop: StopEnd, RawStop: "stop", Usage: usage, AnswerTokens: 15},
			"Hello",
		},
		"no end marker": {chatStream(chatEvents(chatText("Hi"), stop)), step{Text: "Hi", Stop: StopEnd, RawStop: "stop"}, "Hi"},
		"no blank line at the end": {
			chatStream(strings.TrimRight(chatEvents(chatText("Hi"), stop), "\n")),
			step{Text: "Hi", Stop: StopEnd, RawStop: "stop"},
			"Hi",
		},
		"comments and carriage returns": {
			chatStream(": hello\r\n\r\ndata:" + chatText("Hi") + "\r\n\r\nevent: message\r\ndata: " + stop + "\r\n\r\ndata: [DONE]\r\n\r\n"),
			step{Text: "Hi", Stop: StopEnd, RawStop: "stop"},
			"Hi",
		},
		"error null in every chunk": {
			chatChunks(`{"error":null,"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, `{"error":null,"choices":[{"delta":{},"finish_reason":"stop"}]}`),
			step{Text: "Hi", Stop: StopEnd, RawStop: "stop"},
			"Hi",
		},
		"usage in every chunk": {
			chatChunks(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`),
			step{Text: "ab", Stop: StopEnd, RawStop: "stop", Usage: &Usage{InputTokens: 9, OutputTokens: 2}, AnswerTokens: 2},
			"ab",
		},
		"usage null and usage of zero": {
			chatChunks(`{"choices":[{"delta":{"content":"a"}}],"usage":null}`, stop, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`),
			step{Text: "a", Stop: StopEnd, RawStop: "stop"},
			"a",
		},
		"cache hits by DeepSeek": {
			chatChunks(chatText("a"), stop, `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":2,"prompt_cache_hit_tokens":20,"prompt_cache_miss_tokens":10}}`),
			step{Text: "a", Stop: StopEnd, RawStop: "stop", Usage: &Usage{InputTokens: 30, OutputTokens: 2, CacheReadTokens: 20}, AnswerTokens: 2},
			"a",
		},
		"reasoning counted apart": {
			chatChunks(chatText("a"), stop, `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":2,"total_tokens":39,"completion_tokens_details":{"reasoning_tokens":7}}}`),
			step{Text: "a", Stop: StopEnd, RawStop: "stop", Usage: &Usage{InputTokens: 30, OutputTokens: 9, ReasoningTokens: 7}, AnswerTokens: 2},
			"a",
		},
		"reasoning_content": {
			chatChunks(chatDelta(`"content":null,"reasoning_content":"hm \"x\""`), chatDelta(`"reasoning_content":null,"content":"Hi"`), stop),
			step{Text: "Hi", Reasoning: 6, Stop: StopEnd, RawStop: "stop"},
			`<hm "x">Hi`,
		},
		"reasoning, uncounted": {
			chatChunks(chatDelta(`"reasoning":"hm"`), chatText("Hi"), stop, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":50}}`),
			step{Text: "Hi", Reasoning: 2, Stop: StopEnd, RawStop: "stop", Usage: &Usage{InputTokens: 9, OutputTokens: 50}},
			"<hm>Hi",
		},
		"both names of reasoning": {
			chatChunks(chatDelta(`"reasoning":"hm","reasoning_content":"hm"`), chatText("Hi"), stop),
			step{Text: "Hi", Reasoning: 2, Stop: StopEnd, RawStop: "stop"},
			"<hm>Hi",
		},
		"fragments of two calls": {
			chatChunks(
				chatText("I read."),
				chatDelta(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]`),
				chatDelta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]`),
				chatDelta(`"tool_calls":[{"index":1,"id":"b","function":{"name":"read","arguments":"{\"path\":\"y\"}"}}]`),
				chatDelta(`"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}}]`),
				chatFinish("tool_calls")),
			step{Text: "I read.", Calls: []tools.Call{read("a", "x"), read("b", "y")}, Stop: StopToolCalls, RawStop: "tool_calls"},
			"I read.",
		},
		"no index": {
			chatChunks(
				chatDelta(`"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"path\":\"x\"}"}},{"id":"b","function":{"name":"read","arguments":"{\"pa"}}]`),
				chatDelta(`"tool_calls":[{"function":{"arguments":"th\":\"y\"}"}}]`), chatFinish("tool_calls")),
			step{Calls: []tools.Call{read("a", "x"), read("b", "y")}, Stop: StopToolCalls, RawStop: "tool_calls"},
			"",
		},
		"every call has index 0": {
			chatChunks(chatCallChunk("a", "read", `{"path":"x"}`), chatCallChunk("b", "read", `{"path":"y"}`), chatCallChunk("c", "list", ``), chatFinish("tool_calls")),
			step{Calls: []tools.Call{read("a", "x"), read("b", "y"), {ID: "c", Name: "list", Input: chatInput(`{}`)}}, Stop: StopToolCalls, RawStop: "tool_calls"},
			"",
		},
		"index 0 and no ids": {
			chatChunks(chatCallChunk("", "read", `{"path":"x"}`), chatCallChunk("", "read", `{"path":"y"}`), stop),
			step{Calls: []tools.Call{read("call_1", "x"), read("call_2", "y")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"id and name in every fragment": {
			chatChunks(chatCallChunk("a", "read", `{"path"`), chatCallChunk("a", "read", `:"x"}`), chatCallChunk("a", "read", ``), stop),
			step{Calls: []tools.Call{read("a", "x")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"another id in every fragment": {
			chatChunks(chatCallChunk("a", "read", `{"path"`), chatCallChunk("b", "", `:"x"}`), stop),
			step{Calls: []tools.Call{read("a", "x")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"a call repeated whole at the end": {
			chatChunks(chatCallChunk("a", "read", `{"path"`), chatCallChunk("a", "", `:"x"}`), chatCallChunk("a", "read", `{"path":"x"}`), stop),
			step{Calls: []tools.Call{read("a", "x")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"two calls with one id": {
			chatChunks(chatCallChunk("a", "read", `{"path":"x"}`), chatCallChunk("a", "read", `{"path":"y"}`), stop),
			step{Calls: []tools.Call{read("a", "x"), read("call_2", "y")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"an id that is too long": {
			chatChunks(chatCallChunk(longID, "read", `{"path":"x"}`), stop),
			step{Calls: []tools.Call{read("call_1", "x")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"arguments as an object": {
			chatChunks(chatDelta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"path":"x"}}}]`), stop),
			step{Calls: []tools.Call{read("a", "x")}, Stop: StopToolCalls, RawStop: "stop"},
			"",
		},
		"arguments that are no object": {
			chatChunks(chatCallChunk("a", "read", `{"path":`), chatFinish("tool_calls")),
			step{Calls: []tools.Call{{ID: "a", Name: "read", Input: chatInput(`{"` + InvalidInputKey + `":"{\"path\":"}`)}}, Stop: StopToolCalls, RawStop: "tool_calls"},
			"",
		},
		"empty fragments": {
			chatChunks(chatText("a"), chatDelta(`"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":""}}],"function_call":{"name":"","arguments":""}`), chatDelta(`"tool_calls":null,"function_call":null`), stop),
			step{Text: "a", Stop: StopEnd, RawStop: "stop"},
			"a",
		},
		"legacy function call": {
			chatChunks(chatDelta(`"function_call":{"name":"read","arguments":"{\"path\""}`), chatDelta(`"function_call":{"arguments":":\"x\"}"}`), chatFinish("function_call")),
			step{Calls: []tools.Call{read("call_1", "x")}, Stop: StopToolCalls, RawStop: "function_call"},
			"",
		},
		"length": {
			chatChunks(chatText("I wri"), chatCallChunk("a", "read", `{"path":`), chatFinish("length"), chatUsageChunk),
			step{Text: "I wri", CutCalls: 1, Stop: StopLength, RawStop: "length", Usage: usage},
			"I wri",
		},
		"filter": {
			chatChunks(chatText("I"), chatFinish("content_filter")),
			step{Text: "I", Stop: StopRefusal, RawStop: "content_filter"},
			"I",
		},
		"reset after the finish reason": {
			func(w http.ResponseWriter, r *http.Request) {
				chatStream(chatEvents(chatText("Hi"), stop))(w, r)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			},
			step{Text: "Hi", Stop: StopEnd, RawStop: "stop"},
			"Hi",
		},
		"a second choice": {
			chatChunks(chatText("Hi"), `{"choices":[{"index":1,"delta":{"content":"Yo"},"finish_reason":"length"}]}`, stop),
			step{Text: "Hi", Stop: StopEnd, RawStop: "stop"},
			"Hi",
		},
		"refusal": {
			chatChunks(chatDelta(`"refusal":"I won't."`), stop),
			step{Text: "I won't.", Stop: StopRefusal, RawStop: "stop"},
			"I won't.",
		},
		"window full":    {chatChunks(chatFinish("model_context_window_exceeded")), step{Stop: StopContextWindow, RawStop: "model_context_window_exceeded"}, ""},
		"unknown reason": {chatChunks(chatText("a"), chatFinish("whim")), step{Text: "a", Stop: StopUnknown, RawStop: "whim"}, "a"},
		"nothing":        {chatChunks(stop), step{Stop: StopEnd, RawStop: "stop"}, ""},
		"no reason, but usage and end marker": {
			chatChunks(chatText("a"), chatUsageChunk),
			step{Text: "a", Stop: StopEnd, Usage: usage, AnswerTokens: 15},
			"a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, tt.reply)
			got, pieces, err := chatSample(t, chatStart(t, s.adapter(t), chatUserTurn("Hi.")))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Calls) == 0 {
				got.Calls = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
			if pieces != tt.pieces {
				t.Errorf("emitted %q, want %q", pieces, tt.pieces)
			}
		})
	}
}

func TestChatNeverTakesABrokenAnswerForASuccess(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chatEvents(chatText("Hi")))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, tt := range map[string]struct {
		reply http.HandlerFunc
		kind  apierror.Kind
		says  string
	}{
		"clean cut":                   {chatStream(chatEvents(chatText("Hi"))), apierror.KindTransient, "finish reason"},
		"end marker alone":            {chatChunks(chatText("Hi")), apierror.KindTransient, "finish reason"},
		"usage without end marker":    {chatStream(chatEvents(chatText("Hi"), chatUsageChunk)), apierror.KindTransient, "finish reason"},
		"usage, marker and torn call": {chatChunks(chatCallChunk("a", "read", `{"pa`), chatUsageChunk), apierror.KindTransient, "finish reason"},
		"usage, marker, no answer":    {chatChunks(chatUsageChunk), apierror.KindTransient, "finish reason"},
		"reset":                       {hangUp, apierror.KindTransient, "connection was closed"},
		"bad chunk":                   {chatChunks(chatText("Hi"), `{"choices":[`), apierror.KindTransient, "JSON"},
		"chunk of another kind":       {chatChunks(`"Hi"`), apierror.KindTransient, "JSON"},
		"gave up":                     {chatChunks(chatText("Hi"), chatFinish("error")), apierror.KindTransient, "gave up"},
		"nothing at all":              {chatStream(""), apierror.KindTransient, "before it began"},
		"comments only":               {chatStream(": working\n\n: working\n\n"), apierror.KindTransient, "before it began"},
		"web page":                    {chatReply(200, "text/html", "<!DOCTYPE html><p>Welcome"), apierror.KindOther, "base URL"},
		"answer in one piece":         {chatReply(200, "application/json", `{"choices":[{"message":{"content":"Hi"}}]}`), apierror.KindOther, "in one piece"},
		"overloaded inside":           {chatChunks(chatText("Hi"), `{"error":{"message":"Overloaded","type":"server_error","code":503}}`), apierror.KindTransient, "Overloaded"},
		"error event":                 {chatStream("event: error\ndata: the model is overloaded\n\n"), apierror.KindTransient, "overloaded"},
		"error as text":               {chatChunks(chatText("Hi"), `{"error":"the model is overloaded"}`), apierror.KindTransient, "overloaded"},
		"error instead of a chunk":    {chatChunks(`{"object":"error","message":"This model's maximum context length is 2048 tokens, however you requested 4000 tokens","code":400}`), apierror.KindContextOverflow, "2048"},
		"error object in a success":   {chatReply(200, "application/json", `{"error":{"message":"maximum context length is 131072 tokens","code":400}}`), apierror.KindContextOverflow, "131072"},
		"error text keeps its status": {chatReply(500, "application/json", `{"error":"model runner crashed unexpectedly"}`), apierror.KindTransient, "crashed"},
		"plain text keeps its status": {chatReply(503, "text/plain", "upstream connect error"), apierror.KindTransient, "upstream"},
		"empty refusal":               {chatReply(502, "text/plain", ""), apierror.KindTransient, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, tt.reply)
			a := s.adapter(t)
			c := chatStart(t, a, chatUserTurn("Hi."))
			before := c.estimate()
			answer, _, err := chatSample(t, c)
			if err == nil {
				t.Fatalf("no error, but %+v", answer)
			}
			e := a.classify(err)
			if e.Kind != tt.kind || !strings.Contains(e.Error(), tt.says) {
				t.Errorf("error %v (%v) is %s, want %s with %q", e, err, e.Kind, tt.kind, tt.says)
			}
			if e.Provider != "test" {
				t.Errorf("provider = %q", e.Provider)
			}
			if c.estimate() != before {
				t.Errorf("estimate went from %d to %d by a failure", before, c.estimate())
			}
			if len(s.sent()) != 1 {
				t.Errorf("%d requests were sent, want 1: retries are the loop's", len(s.sent()))
			}
		})
	}
}

func TestChatErrorsCarryRetryAfterAndNoSecret(t *testing.T) {
	s := newChatServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		chatReply(429, "application/json", `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)(w, nil)
	})
	a := s.adapter(t, func(c *ClientConfig) {
		c.Credential = &chatCredential{token: func(string) (string, error) { return "sk-secret", nil }}
	})
	_, _, err := chatSample(t, chatStart(t, a, chatUserTurn("my private words")))
	e := a.classify(err)
	if e.Kind != apierror.KindRateLimit || e.Status != 429 || e.Code != "rate_limit_exceeded" || e.RetryAfter.Seconds() != 7 {
		t.Errorf("classified as %+v", e)
	}
	for _, text := range []string{e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", err)} {
		if strings.Contains(text, "sk-secret") || strings.Contains(text, "private") {
			t.Errorf("error shows what was sent: %s", text)
		}
	}
	if again := a.classify(fmt.Errorf("wrapped: %w", e)); again != e {
		t.Errorf("a classified error was classified again: %v", again)
	}
	if got := a.classify(nil); got != nil {
		t.Errorf("classify(nil) = %v", got)
	}
}

func TestChatUnreachableServerIsTransient(t *testing.T) {
	s := newChatServer(t, chatChunks())
	a := s.adapter(t)
	s.Close()
	_, _, err := chatSample(t, chatStart(t, a, chatUserTurn("Hi.")))
	if e := a.classify(err); e == nil || e.Kind != apierror.KindTransient {
		t.Errorf("%v is %+v, want transient", err, e)
	}
}

func TestChatClosesTheBody(t *testing.T) {
	for name, tt := range map[string]struct {
		// body is what the server sends before it waits for the client.
		body      string
		cancelled bool
	}{
		"on cancellation":        {chatEvents(chatText("Hi")), true},
		"after the end marker":   {chatEvents(chatText("Hi"), chatFinish("stop"), "[DONE]"), false},
		"after an error inside":  {chatEvents(chatText("Hi"), `{"error":"no"}`), false},
		"after a chunk of noise": {chatEvents("noise"), false},
	} {
		t.Run(name, func(t *testing.T) {
			ignored := goleak.IgnoreCurrent()
			closed := make(chan struct{})
			s := newChatServer(t, func(w http.ResponseWriter, r *http.Request) {
				chatStream(tt.body)(w, r)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				close(closed)
			})
			a := s.adapter(t)
			c := chatStart(t, a, chatUserTurn("Hi."))
			before := c.estimate()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := chatPrepare(t, c, chatWide).sample(ctx, func(delta) {
				if tt.cancelled {
					cancel()
				}
			})
			if cancelled := errors.Is(err, context.Canceled) && a.classify(err).Kind == apierror.KindCancelled; cancelled != tt.cancelled {
				t.Errorf("error = %v", err)
			}
			if recorded := c.estimate() != before; recorded != (err == nil) {
				t.Errorf("recorded: %v, error: %v", recorded, err)
			}
			<-closed
			s.Close()
			goleak.VerifyNone(t, ignored)
		})
	}
}

// chatMessages returns the messages and the tools of a request as they were on
// the wire.
func chatMessages(t *testing.T, body []byte) (messages, offered string) {
	t.Helper()
	var request struct{ Messages, Tools json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(request.Messages), "]"), string(request.Tools)
}

// chatResults answers each call with the text.
func chatResults(calls []tools.Call, text string) []tools.Result {
	var results []tools.Result
	for _, k := range calls {
		results = append(results, tools.Result{CallID: k.ID, Tool: k.Name, Status: tools.StatusSuccess, Output: text})
	}
	return results
}

// chatTurn plays a turn of several steps, one of which fails, and returns the
// requests.
func chatTurn(t *testing.T, change ...func(*ClientConfig)) []chatSent {
	t.Helper()
	s := newChatServer(t,
		chatChunks(chatDelta(`"reasoning_content":"Let me see."`), chatText("I <look>."), chatCallChunk("same", "read", `{"path":"x"}`), chatFinish("tool_calls")),
		chatStream(chatEvents(chatText("torn"), chatCallChunk("same", "read", `{"path":"x"}`))),
		chatChunks(chatCallChunk("same", "read", `{"path":"y"}`), chatCallChunk("", "list", `{}`), chatFinish("stop")),
		chatChunks(chatText("Half an ans"), chatFinish("length")),
		chatChunks(chatText("wer."), chatFinish("stop")),
	)
	c := chatStart(t, s.adapter(t, change...), turnRequest{System: "Be brief.", History: chatHistory, Specs: chatSpecs})
	for i := range 5 {
		answer, _, err := chatSample(t, c)
		if failed := err != nil; failed != (i == 1) {
			t.Fatalf("request %d: error %v", i, err)
		}
		switch {
		case len(answer.Calls) > 0:
			c.appendResults(chatResults(answer.Calls, "<output>"))
		case answer.Stop == StopLength:
			c.appendUser("Go on.")
		}
	}
	return s.sent()
}

func TestChatRequestsExtendTheOneBefore(t *testing.T) {
	sent := chatTurn(t)
	for i := 1; i < len(sent); i++ {
		before, offeredBefore := chatMessages(t, sent[i-1].body)
		after, offered := chatMessages(t, sent[i].body)
		if !strings.HasPrefix(after, before) {
			t.Errorf("request %d does not extend the one before:\n%s\n%s", i, before, after)
		}
		if offered != offeredBefore {
			t.Errorf("request %d offers other tools:\n%s\n%s", i, offeredBefore, offered)
		}
	}
	if !bytes.Equal(sent[1].body, sent[2].body) {
		t.Error("a failed sample changed the next request")
	}
}

func TestChatEqualInputMakesEqualRequests(t *testing.T) {
	first, second := chatTurn(t), chatTurn(t)
	for i := range first {
		if !bytes.Equal(first[i].body, second[i].body) {
			t.Errorf("request %d differs:\n%s\n%s", i, first[i].body, second[i].body)
		}
	}
}

func TestChatPairsEveryCallWithOneResult(t *testing.T) {
	sent := chatTurn(t)
	var request struct {
		Messages []struct {
			Role       string
			ToolCallID string                `json:"tool_call_id"`
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(sent[len(sent)-1].body, &request); err != nil {
		t.Fatal(err)
	}
	var pending, seen []string
	for i, m := range request.Messages {
		if m.Role == "tool" {
			if len(pending) == 0 || pending[0] != m.ToolCallID {
				t.Fatalf("message %d answers %s, open are %v", i, m.ToolCallID, pending)
			}
			pending = pending[1:]
			continue
		}
		if len(pending) > 0 {
			t.Fatalf("message %d comes before the results of %v", i, pending)
		}
		for _, k := range m.ToolCalls {
			if slices.Contains(seen, k.ID) {
				t.Errorf("id %s is used twice", k.ID)
			}
			pending, seen = append(pending, k.ID), append(seen, k.ID)
		}
	}
	if len(seen) != 5 || len(pending) != 0 {
		t.Errorf("calls %v, without a result %v", seen, pending)
	}
}

func TestChatReasoningIsReplayedOnlyWhereDemanded(t *testing.T) {
	for name, tt := range map[string]struct {
		replay bool
		want   []string // reasoning_content of each assistant message
	}{
		"usual":    {false, []string{"-", "-", "-", "-", "-"}},
		"demanded": {true, []string{"", "-", "Let me see.", "", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			sent := chatTurn(t, func(c *ClientConfig) { c.ReplayReasoning = tt.replay })
			var request struct {
				Messages []struct {
					Role      string
					Reasoning *string `json:"reasoning_content"`
				}
			}
			if err := json.Unmarshal(sent[len(sent)-1].body, &request); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range request.Messages {
				switch {
				case m.Role != "assistant":
				case m.Reasoning == nil:
					got = append(got, "-")
				default:
					got = append(got, *m.Reasoning)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reasoning sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatReplayedReasoningCounts(t *testing.T) {
	thought := strings.Repeat("I wonder about this. ", 1000)
	grown := func(replay bool) (int, int) {
		s := newChatServer(t, chatChunks(chatDelta(fmt.Sprintf(`"reasoning_content":%q`, thought)), chatText("Hi"), chatFinish("stop"), chatUsageChunk))
		c := chatStart(t, s.adapter(t, func(c *ClientConfig) { c.ReplayReasoning = replay }), chatUserTurn("Hi."))
		before := c.estimate()
		answer, _, err := chatSample(t, c)
		if err != nil {
			t.Fatal(err)
		}
		return c.estimate() - before, answer.AnswerTokens
	}
	if size, reported := grown(true); size < token.Estimate(thought) || reported != 20 {
		t.Errorf("with replay the answer counts %d, reported %d", size, reported)
	}
	if size, reported := grown(false); size > 50 || reported != 15 {
		t.Errorf("without replay the answer counts %d, reported %d", size, reported)
	}
}

func TestChatEstimateCountsEverythingSent(t *testing.T) {
	big := strings.Repeat("The quick brown fox. ", 5000) // 100 KB
	tokens := token.Estimate(big)
	input, err := json.Marshal(map[string]string{"content": big})
	if err != nil {
		t.Fatal(err)
	}
	a := newChatServer(t, chatChunks(chatCallChunk("a", "write", string(input)), chatFinish("tool_calls"))).adapter(t)
	small := chatStart(t, a, chatUserTurn("Hi.")).estimate()
	if small <= 0 || small > 500 {
		t.Errorf("a small request counts %d", small)
	}
	with := func(change func(*turnRequest)) int {
		r := chatUserTurn("Hi.")
		change(&r)
		return chatStart(t, a, r).estimate()
	}
	activity := func(in json.RawMessage, out string) []Message {
		return []Message{{Role: RoleUser, Content: "Hi."}, {Role: RoleAssistant, ToolActivities: []HistoricalToolActivity{
			{Tool: "write", Input: in, Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: out},
		}}}
	}
	for name, got := range map[string]int{
		"system prompt": with(func(r *turnRequest) { r.System = big }),
		"user message":  with(func(r *turnRequest) { r.History = []Message{{Role: RoleUser, Content: big}} }),
		"tool input":    with(func(r *turnRequest) { r.History = activity(input, "") }),
		"tool output":   with(func(r *turnRequest) { r.History = activity(nil, big) }),
		"description":   with(func(r *turnRequest) { r.Specs = []tools.Spec{{Name: "a", Description: big}} }),
		"schema": with(func(r *turnRequest) {
			r.Specs = []tools.Spec{{Name: "a", Schema: json.RawMessage(`{"type":"object","title":"` + big + `"}`)}}
		}),
	} {
		if got < tokens || got > tokens+small+200 {
			t.Errorf("%s of %d tokens: estimate %d", name, tokens, got)
		}
	}
	c := chatStart(t, a, chatUserTurn("Hi."))
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	if got := c.estimate(); got < small+tokens || got > small+tokens+200 {
		t.Errorf("after a call with an input of %d tokens the estimate is %d", tokens, got)
	}
}

func TestChatReducesOnACopy(t *testing.T) {
	s := newChatServer(t, chatChunks(chatText("ok"), chatFinish("stop")))
	output := strings.Repeat("one line of output\n", 4000)
	history := []Message{{Role: RoleUser, Content: "Hi."}, {Role: RoleAssistant, ToolActivities: []HistoricalToolActivity{
		{Tool: "read", Input: json.RawMessage(`{"path":"x"}`), Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: output},
	}}}
	c := chatStart(t, s.adapter(t), turnRequest{System: "Be brief.", History: history})
	full := c.estimate()
	p := chatPrepare(t, c, requestLimits{Budget: full / 2, Output: 100})
	if !p.reduced || p.estimate > full/2 || c.estimate() != full {
		t.Errorf("prepared %d, reduced %v, of %d with a budget of %d; the conversation is %d now", p.estimate, p.reduced, full, full/2, c.estimate())
	}
	if _, err := p.sample(t.Context(), func(delta) {}); err != nil {
		t.Fatal(err)
	}
	if body := s.sent()[0].body; len(body) > len(output)*2/3 || !bytes.Contains(body, []byte("left out")) {
		t.Errorf("the request was not reduced: %d bytes", len(body))
	}
	if p := chatPrepare(t, c, chatWide); p.reduced {
		t.Error("the next request is reduced although there is room")
	}
	if _, err := c.prepare(requestLimits{Budget: 20}); !errors.Is(err, ErrContextWindowExceeded) {
		t.Errorf("error = %v, want one that says that the request does not fit", err)
	}
}

func TestChatClassifiesWhatServersReallySend(t *testing.T) {
	// These are answers, not errors; the loop finds out by window and usage.
	shapes := map[string]StopReason{"E031": StopContextWindow, "E094": StopLength, "E095": StopEnd}
	// A timeout of Go's own client, which no server can send.
	const clientTimeout = "E150"
	rows := 0
	for _, row := range recordedErrors(t) {
		if row.API != "chat" || row.ID == clientTimeout {
			continue
		}
		rows++
		t.Run(row.ID, func(t *testing.T) {
			reply := chatStream(row.Body)
			if row.Transport == "http" {
				status := row.Status
				if status == 0 {
					status = http.StatusBadRequest // Not in the report.
				}
				reply = chatReply(status, "application/json", row.Body)
			}
			a := newChatServer(t, reply).adapter(t)
			answer, _, err := chatSample(t, chatStart(t, a, chatUserTurn("Hi.")))
			if stop, ok := shapes[row.ID]; ok {
				if err != nil || answer.Stop != stop {
					t.Errorf("answer %+v, error %v, want stop %q", answer, err, stop)
				}
				return
			}
			e := a.classify(err)
			if e == nil {
				t.Fatalf("no error, but %+v", answer)
			}
			if string(e.Kind) != row.Kind {
				t.Errorf("%s is %s, want %s", row.Body, e.Kind, row.Kind)
			}
			if row.Kind == string(apierror.KindContextOverflow) && row.Tokens.Limit > 0 && e.Limit != row.Tokens.Limit {
				t.Errorf("limit of %s = %d, want %d", row.Body, e.Limit, row.Tokens.Limit)
			}
		})
	}
	if rows < 50 {
		t.Errorf("only %d rows were found", rows)
	}
}

func TestChatTurnSurvivesAnOverflow(t *testing.T) {
	s := newChatServer(t,
		chatChunks(chatText("I read."), chatCallChunk("a", "read_file", `{"path":"x","tokens":500}`), chatFinish("tool_calls")),
		chatReply(400, "application/json", `{"error":{"message":"This model's maximum context length is 32768 tokens. However, your messages resulted in 40000 tokens.","code":"context_length_exceeded"}}`),
		chatChunks(chatText(goodSummary), chatFinish("stop")),
		chatChunks(chatText("All done."), chatFinish("stop")),
	)
	c, err := NewOpenAIClient(ClientConfig{
		Provider: "test", Model: "model-1", BaseURL: s.URL + "/v1", ContextWindow: 32768,
		HTTPClient: s.Client(), Retry: testRetry, Effort: "high",
	})
	if err != nil {
		t.Fatal(err)
	}
	events := runTurn(t, c, registry(), system("Be brief."), user("Read x, then report."))
	if end := last(events); end.Type != StreamEventTypeDone || count(events, StreamEventTypeAutoCompactionApplied) != 1 {
		t.Fatalf("events %v, error %v", kinds(events), end.Err)
	}
	sent := s.sent()
	if len(sent) != 4 {
		t.Fatalf("%d requests were sent, want 4", len(sent))
	}
	if _, offered := chatMessages(t, sent[2].body); offered != "" || !bytes.Contains(sent[2].body, []byte(`"reasoning_effort":"low"`)) {
		t.Errorf("the compaction request offers tools or thinks: %s", sent[2].body)
	}
	messages, offered := chatMessages(t, sent[3].body)
	_, before := chatMessages(t, sent[0].body)
	if !strings.Contains(messages, "Read x, then report.") || strings.Contains(messages, "tool_call") || offered != before {
		t.Errorf("the request after the compaction: %s", sent[3].body)
	}
}
