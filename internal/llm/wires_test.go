package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/simulator"
	"keen/internal/tools"
)

// wireOf returns the client of a wire that talks to a server.
func wireOf(t *testing.T, s *chatServer, wire string, change ...func(*ClientConfig)) *Client {
	t.Helper()
	cfg := ClientConfig{
		Provider: "test", Model: "model-1", BaseURL: s.URL, ContextWindow: 128000, HTTPClient: s.Client(),
		Credential: testKey("key-1"), Retry: testRetry,
	}
	if wire == "bedrock" {
		cfg.Credential, cfg.AWS = nil, AWSConfig{Region: "us-east-1", Credentials: staticAWS{}}
	}
	for _, f := range change {
		f(&cfg)
	}
	switch wire {
	case "responses":
		return mustClient(t)(NewOpenAIResponsesClient(cfg))
	case "codex":
		return mustClient(t)(NewOpenAICodexClient(cfg))
	case "anthropic":
		return mustClient(t)(NewAnthropicClient(cfg))
	case "gemini":
		return mustClient(t)(NewGenkitClient(t.Context(), cfg))
	case "bedrock":
		return mustClient(t)(NewBedrockClient(t.Context(), cfg))
	}
	t.Fatalf("no client for %s", wire)
	return nil
}

// begin starts a conversation.
func begin(t *testing.T, c *Client, r turnRequest) conversation {
	t.Helper()
	conv, err := c.adapter.start(r)
	if err != nil {
		t.Fatal(err)
	}
	return conv
}

// ask sends a first request of one word.
func ask(t *testing.T, c *Client) (step, string, error) {
	t.Helper()
	return chatSample(t, begin(t, c, chatUserTurn("Hi.")))
}

// events makes a stream of JSON events, each under the name of its type.
func events(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var v struct{ Type string }
		if err := json.Unmarshal([]byte(e), &v); err != nil {
			panic(fmt.Sprintf("%v: %s", err, e))
		}
		b.WriteString("event: " + v.Type + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

// sentJSON returns a request body as a value, and fails when there was none.
func sentJSON(t *testing.T, r chatSent) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// wantJSON compares a value with JSON.
func wantJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	var v any
	if want != "" {
		if err := json.Unmarshal([]byte(want), &v); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(v, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantAnswer checks how an answer is read.
func wantAnswer(t *testing.T, c *Client, want step, wantPieces string) {
	t.Helper()
	got, pieces, err := ask(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
	if pieces != wantPieces {
		t.Errorf("emitted %q, want %q", pieces, wantPieces)
	}
}

// brokenAnswer is an answer that must never be taken for a success.
type brokenAnswer struct {
	reply http.HandlerFunc
	kind  apierror.Kind
	says  string
}

// wantBroken checks that a broken answer is an error that says what is wrong,
// that it leaves no trace in the conversation, and that it is not retried here.
func wantBroken(t *testing.T, wire string, b brokenAnswer) {
	t.Helper()
	s := newChatServer(t, b.reply)
	c := wireOf(t, s, wire)
	conv := begin(t, c, chatUserTurn("Hi."))
	before := conv.estimate()
	answer, _, err := chatSample(t, conv)
	if err == nil {
		t.Fatalf("no error, but %+v", answer)
	}
	e := c.adapter.classify(err)
	if e.Kind != b.kind || !strings.Contains(e.Error(), b.says) {
		t.Errorf("error %v (%v) is %s, want %s with %q", e, err, e.Kind, b.kind, b.says)
	}
	if e.Provider != "test" {
		t.Errorf("provider = %q", e.Provider)
	}
	if conv.estimate() != before {
		t.Errorf("estimate went from %d to %d by a failure", before, conv.estimate())
	}
	if n := len(s.sent()); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
	if strings.Contains(e.Error(), "key-1") || strings.Contains(e.Error(), "Be brief") {
		t.Errorf("the error shows what was sent: %v", e)
	}
}

// torn replies with a stream that is reset.
func torn(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// newWires are the clients beside Chat Completions.
var newWires = []string{"responses", "codex", "anthropic", "gemini", "bedrock"}

func TestSuccessThatIsNoStreamIsExplained(t *testing.T) {
	for _, wire := range newWires {
		for name, b := range map[string]brokenAnswer{
			"web page":            {chatReply(200, "text/html; charset=utf-8", "<!DOCTYPE html><p>Welcome"), apierror.KindOther, "base URL"},
			"answer in one piece": {chatReply(200, "application/json", `{"id":"x","output":[]}`), apierror.KindOther, "in one piece"},
			"error object":        {chatReply(200, "application/json", `{"error":{"message":"This model's maximum context length is 131072 tokens","code":400}}`), apierror.KindContextOverflow, "131072"},
			"nothing":             {chatReply(200, "text/event-stream", ""), apierror.KindTransient, ""},
			"plain text":          {chatReply(503, "text/plain", "upstream connect error"), apierror.KindTransient, "503"},
			"plain text refusal":  {chatReply(403, "text/plain", "Forbidden"), apierror.KindAuth, "403"},
			"empty refusal":       {chatReply(502, "text/plain", ""), apierror.KindTransient, "502"},
			"web page of a proxy": {chatReply(502, "text/html", "<html><head><title>502 Bad Gateway</title></head></html>"), apierror.KindTransient, "502"},
		} {
			t.Run(wire+"/"+name, func(t *testing.T) { wantBroken(t, wire, b) })
		}
	}
}

func TestStreamUnderTheWrongNameIsRead(t *testing.T) {
	for _, contentType := range []string{"application/json", "text/html"} {
		s := newChatServer(t, chatReply(200, contentType, responsesText("Hi")))
		if got, _, err := ask(t, wireOf(t, s, "responses")); err != nil || got.Text != "Hi" {
			t.Errorf("%s: %+v, error %v", contentType, got, err)
		}
	}
}

func TestUnreachableServerIsTransientOnEveryWire(t *testing.T) {
	for _, wire := range newWires {
		s := newChatServer(t, chatReply(200, "", ""))
		c := wireOf(t, s, wire)
		s.Close()
		_, _, err := ask(t, c)
		if e := c.adapter.classify(err); e == nil || e.Kind != apierror.KindTransient {
			t.Errorf("%s: %v is %+v, want transient", wire, err, e)
		}
	}
}

func TestRetryAfterIsHonouredOnEveryWire(t *testing.T) {
	for _, wire := range []string{"responses", "codex", "anthropic", "bedrock"} {
		s := newChatServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			chatReply(429, "application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"},"message":"slow down"}`)(w, nil)
		})
		c := wireOf(t, s, wire)
		_, _, err := ask(t, c)
		if e := c.adapter.classify(err); e.Kind != apierror.KindRateLimit || e.RetryAfter.Seconds() != 7 || e.Status != 429 {
			t.Errorf("%s: %+v", wire, e)
		}
	}
}

// TestWeakPoint03To05_EverythingSentCounts: tool traffic, arguments, system
// prompt, and schemas are part of the estimate of each client.
func TestWeakPoint03To05_EverythingSentCounts(t *testing.T) {
	big := strings.Repeat("The quick brown fox. ", 5000) // 100 KB
	tokens := token.Estimate(big)
	input, err := json.Marshal(map[string]string{"content": big})
	if err != nil {
		t.Fatal(err)
	}
	activity := func(in json.RawMessage, out string) []Message {
		return []Message{user("Hi."), {Role: RoleAssistant, ToolActivities: []HistoricalToolActivity{
			{Tool: "write", Input: in, Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: out},
		}}}
	}
	for _, wire := range newWires {
		t.Run(wire, func(t *testing.T) {
			c := wireOf(t, newChatServer(t, chatReply(200, "", "")), wire)
			small := begin(t, c, chatUserTurn("Hi.")).estimate()
			if small <= 0 || small > 500 {
				t.Errorf("a small request counts %d", small)
			}
			for name, change := range map[string]func(*turnRequest){
				"system prompt": func(r *turnRequest) { r.System = big },
				"user message":  func(r *turnRequest) { r.History = []Message{user(big)} },
				"answer": func(r *turnRequest) {
					r.History = []Message{user("Hi."), {Role: RoleAssistant, Content: big}, user("Yo.")}
				},
				"tool input":  func(r *turnRequest) { r.History = activity(input, "x") },
				"tool output": func(r *turnRequest) { r.History = activity(nil, big) },
				"description": func(r *turnRequest) {
					r.Specs = []tools.Spec{{Name: "a", Description: big, Schema: json.RawMessage(`{}`)}}
				},
				"schema": func(r *turnRequest) {
					r.Specs = []tools.Spec{{Name: "a", Schema: json.RawMessage(`{"type":"object","title":"` + big + `"}`)}}
				},
			} {
				r := chatUserTurn("Hi.")
				change(&r)
				if got := begin(t, c, r).estimate(); got < tokens || got > tokens+small+200 {
					t.Errorf("%s of %d tokens: estimate %d", name, tokens, got)
				}
			}
		})
	}
}

func TestB29_LargeToolInputsCount(t *testing.T) {
	source, err := os.ReadFile("loop.go")
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]string{"content": strings.Repeat(string(source), 10)})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wiresUnderTest {
		t.Run(w.name, func(t *testing.T) {
			_, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence()}, 1000000)
			conv, err := client.adapter.start(turnRequest{History: []Message{
				user("x"), {Role: RoleAssistant, ToolActivities: []HistoricalToolActivity{{Tool: "write_file", Input: input, Status: tools.StatusSuccess}}}, user("y"),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := conv.estimate(); got < len(input)/5 {
				t.Errorf("an input of %d bytes counts %d tokens", len(input), got)
			}
		})
	}
}

// TestWeakPoint03And04_ToolTrafficOfTheTurnCounts: what a turn itself adds is
// seen by the next checkpoint, without any report of usage.
func TestWeakPoint03And04_ToolTrafficOfTheTurnCounts(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		big := strings.Repeat("The quick brown fox. ", 500) // below the output limit
		reply := simulator.Calls(simulator.Call{Name: "read", Input: fmt.Sprintf(`{"path":%q}`, big)})
		_, c := w.simulate(t, simulator.Options{Script: simulator.NewSequence(reply), Window: 128000, Usage: simulator.UsageOff}, 128000)
		conv := begin(t, c, chatUserTurn("Hi."))
		before := conv.estimate()
		answer, _, err := chatSample(t, conv)
		if err != nil {
			t.Fatal(err)
		}
		asked := conv.estimate()
		if got := asked - before; got < token.Estimate(big) {
			t.Errorf("a call with an input of %d tokens adds %d", token.Estimate(big), got)
		}
		conv.appendResults(chatResults(answer.Calls, big))
		if got := conv.estimate() - asked; got < token.Estimate(big) {
			t.Errorf("a result of %d tokens adds %d", token.Estimate(big), got)
		}
	})
}

// TestWeakPoint08_InputAndOutputStayWithinTheWindow: the server counts input
// and output limit together, and never has to reject.
func TestWeakPoint08_InputAndOutputStayWithinTheWindow(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		const window = 32768
		script := marathon(40)
		server, c := w.simulate(t, simulator.Options{Script: script, Window: window}, window)
		wantDone(t, runTurn(t, c, tools.NewRegistry(partTool{}), system("You are Keen. "+textOf(1500)), user(marathonTask)))
		for _, r := range server.Records() {
			if total := r.Request.InputTokens + max(r.Request.MaxOutput, c.Sizes().Output); total > window {
				t.Errorf("request %d asks for %d of %d tokens", r.Request.Number, total, window)
			}
		}
	})
}

func TestClientsWriteNothingToTheTerminal(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	stdout, stderr := os.Stdout, os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout, os.Stderr = write, write
	written := make(chan string)
	go func() {
		all, _ := io.ReadAll(read)
		written <- string(all)
	}()
	t.Cleanup(func() {
		os.Stdout, os.Stderr = stdout, stderr
		log.SetOutput(io.Discard)
		slog.SetDefault(slog.New(slog.DiscardHandler))
	})
	for _, wire := range newWires {
		for _, reply := range []http.HandlerFunc{
			torn("text/event-stream", "data: {\"ty"), chatReply(500, "application/json", `{"error":{"message":"x"}}`), chatReply(200, "text/event-stream", ""),
		} {
			for _, effort := range []string{"", "high", "2000", "off"} {
				s := newChatServer(t, reply)
				c := wireOf(t, s, wire, func(cfg *ClientConfig) {
					cfg.Effort = effort
					if wire == "anthropic" {
						// The SDK warns about a thinking budget for this one.
						cfg.Model = "claude-opus-4-6"
					}
				})
				if _, _, err := ask(t, c); err == nil {
					t.Errorf("%s: no error", wire)
				}
			}
		}
	}
	_ = write.Close()
	if text := <-written; text != "" {
		t.Errorf("written to the terminal: %q", text)
	}
	// Google's libraries log; the program discards that before it starts.
	for line := range strings.Lines(logged.String()) {
		if !strings.Contains(line, "unexpected EOF") && !strings.Contains(strings.ToLower(line), "genkit") {
			t.Errorf("logged: %s", line)
		}
	}
}

func TestWhatAnswersBelongToIsDroppedByACompaction(t *testing.T) {
	// Thinking, signatures and encrypted reasoning live inside a turn; what
	// stands after a compaction is a fresh start.
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		first := read(1)
		first.Reasoning = "SECRET-THOUGHT about the first part."
		script := simulator.NewSequence(first, readMany(), simulator.Text("Done."))
		server, c := w.simulate(t, simulator.Options{Script: script, Window: 32768}, 32768)
		wantDone(t, runTurn(t, c, parts(), user(task)))
		parents := server.Records().Parents()
		if len(server.Records().Compactions()) != 1 || len(parents) != 3 {
			t.Fatalf("%d compactions, %d requests", len(server.Records().Compactions()), len(parents))
		}
		last := parents[2].Request
		for _, gone := range []string{"SECRET-THOUGHT", `"signature"`, `"encrypted_content":`, `"thoughtSignature"`, `"toolUse"`, `"tool_use"`, `"functionCall"`, `"function_call"`} {
			if bytes.Contains(last.Raw, []byte(gone)) {
				t.Errorf("%q is still sent after the compaction", gone)
			}
		}
		wantRules(t, server)
	})
}
