package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"keen/internal/simulator"
	"keen/internal/tools"
)

// testKey is the secret of every test client.
type testKey string

func (k testKey) AccountID(context.Context) (string, error) { return "account-1", nil }

func (k testKey) Token(context.Context, string) (string, error) { return string(k), nil }

// wireUnderTest is one of the clients over its own wire.
type wireUnderTest struct {
	name string
	// client makes the client for a server.
	client func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client
}

// wiresUnderTest are the clients that every contract test runs over.
var wiresUnderTest = []wireUnderTest{
	{"chat", func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client {
		cfg.BaseURL = server.URL() + "/v1"
		return mustClient(t)(NewOpenAIClient(cfg))
	}},
	{"responses", func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client {
		cfg.BaseURL = server.URL() + "/v1"
		return mustClient(t)(NewOpenAIResponsesClient(cfg))
	}},
	{"codex", func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client {
		cfg.BaseURL = server.URL() + "/backend-api/codex"
		return mustClient(t)(NewOpenAICodexClient(cfg))
	}},
	{"anthropic", func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client {
		cfg.BaseURL = server.URL()
		return mustClient(t)(NewAnthropicClient(cfg))
	}},
	{"gemini", func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client {
		cfg.BaseURL, cfg.Model = server.URL(), "gemini-3-pro"
		return mustClient(t)(NewGenkitClient(t.Context(), cfg))
	}},
	{"bedrock", func(t testing.TB, server *simulator.Server, cfg ClientConfig) *Client {
		cfg.BaseURL, cfg.Credential = server.URL(), nil
		cfg.AWS = AWSConfig{Region: "us-east-1", Credentials: staticAWS{}}
		return mustClient(t)(NewBedrockClient(t.Context(), cfg))
	}},
}

// staticAWS are the AWS credentials of every test client.
type staticAWS struct{}

func (staticAWS) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test-key", SecretAccessKey: "test-secret"}, nil
}

func mustClient(t testing.TB) func(*Client, error) *Client {
	return func(c *Client, err error) *Client {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// onEveryWire runs a test for each client. The options say what the server
// does; the configuration is completed with what a client needs.
func onEveryWire(t *testing.T, run func(t *testing.T, w wireUnderTest)) {
	t.Helper()
	for _, w := range wiresUnderTest {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			run(t, w)
		})
	}
}

// simulate starts a server and a client of it. window is what the client
// believes.
func (w wireUnderTest) simulate(t testing.TB, o simulator.Options, window int) (*simulator.Server, *Client) {
	t.Helper()
	o.Key = "test-key"
	server, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	http := NewHTTPClient()
	t.Cleanup(http.CloseIdleConnections)
	client := w.client(t, server, ClientConfig{
		Provider: "simulator", Model: "scripted-1", Credential: testKey("test-key"), ContextWindow: window,
		MaxOutputTokens: 8192, HTTPClient: http, Retry: testRetry,
	})
	return server, client
}

// marathonTask is a task that must survive every compaction, byte for byte.
const marathonTask = "Work through all 200 parts.\n\nKeep \"quotes\", <tags>, ünïcödé and inner   blanks as they are."

// partTool returns about 6 KB of source-like text.
type partTool struct{}

func (partTool) Spec() tools.Spec {
	return tools.Spec{
		Name: "read_part", Description: "Reads one part of the job.",
		Schema: json.RawMessage(`{"type":"object","properties":{"part":{"type":"integer"}},"required":["part"]}`),
	}
}

func (partTool) Run(_ context.Context, input json.RawMessage, _ func(tools.Progress)) (tools.Result, error) {
	var in struct{ Part int }
	if err := json.Unmarshal(input, &in); err != nil {
		return tools.Result{}, err
	}
	var b strings.Builder
	for line := 0; b.Len() < 6000; line++ {
		fmt.Fprintf(&b, "%4d\tif value := table[%d].lookup(key%d); value != nil { total += value.size(%d) }\n", line, in.Part, line*7, in.Part*line)
	}
	return tools.Result{Output: b.String()}, nil
}

func marathon(steps int) *simulator.Marathon {
	return simulator.NewMarathon(simulator.MarathonOptions{
		Steps: steps, Tool: "read_part", Final: "All parts are done.",
		Input: func(step, _ int) string { return fmt.Sprintf(`{"part":%d}`, step) },
		Say: func(step int) string {
			if step%3 == 0 {
				return fmt.Sprintf("Part %d is next.", step)
			}
			return ""
		},
	})
}

// runMarathon runs a long job and checks what must hold for every one. It
// returns the records and the events.
func runMarathon(t *testing.T, server *simulator.Server, client *Client, script *simulator.Marathon, steps int) (simulator.Records, []StreamEvent) {
	t.Helper()
	events := runTurn(t, client, tools.NewRegistry(partTool{}), system("You are Keen. "+textOf(1500)), user(marathonTask))
	wantDone(t, events)
	if got := script.Done(); got != steps {
		t.Errorf("%d steps are done, want %d", got, steps)
	}
	if got := answerText(events); !strings.HasSuffix(got, "All parts are done.") {
		t.Errorf("the answer ends with %q", got[max(0, len(got)-80):])
	}
	records := server.Records()
	compacted := false
	for _, r := range records {
		switch {
		case r.Verdict != simulator.Accepted && r.Verdict != simulator.RejectedWindow:
			t.Errorf("request %d was rejected: %s", r.Request.Number, r.Reason)
		case !r.Request.Contains(marathonTask):
			t.Errorf("request %d does not hold the task verbatim", r.Request.Number)
		case r.Request.Compaction():
			compacted = compacted || r.Verdict == simulator.Accepted
		case compacted && r.Request.Wrappers() != 1:
			t.Errorf("request %d has %d wrappers, want 1", r.Request.Number, r.Request.Wrappers())
		}
	}
	if len(records.Compactions()) < 2 {
		t.Errorf("only %d compactions", len(records.Compactions()))
	}
	if applied := count(events, StreamEventTypeAutoCompactionApplied); applied > len(records.Parents())/2+1 {
		t.Errorf("%d compactions in %d requests", applied, len(records.Parents()))
	}
	return records, events
}

func TestMarathon(t *testing.T) {
	const steps, window = 200, 32768
	for _, c := range []struct {
		name     string
		options  simulator.Options
		believed int
		rejected int
	}{
		{"usage on", simulator.Options{Usage: simulator.UsageOn}, window, 0},
		{"usage off", simulator.Options{Usage: simulator.UsageOff}, window, 0},
		{"window believed too large", simulator.Options{}, 200000, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEveryWire(t, func(t *testing.T, w wireUnderTest) {
				script := marathon(steps)
				o := c.options
				o.Script, o.Window = script, window
				server, client := w.simulate(t, o, c.believed)
				records, _ := runMarathon(t, server, client, script, steps)
				if got := len(records.OverWindow()); got != c.rejected {
					t.Errorf("%d requests over the window, want %d", got, c.rejected)
				}
				if got := client.Sizes().Window; got != window {
					t.Errorf("the window is taken to be %d, want %d", got, window)
				}
			})
		})
	}
}
