package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keen/internal/cli/repl"
	"keen/internal/cli/repl/appstate"
	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/simulator"
)

// demoFlags are the flags of `keen demo`.
type demoFlags struct {
	wire     string
	window   int
	cwd      string
	headless bool
}

func (a *App) demoCommand() *cobra.Command {
	f := demoFlags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "See a long job in a small context window, without a key",
		Long: `Demo runs the real agent with its real tools on the files of this directory. Only
the model is not real: it is a script behind a local server, which enforces a
small context window as a provider does. The script has no memory but its
context, so that its answer is right only if nothing was lost on the way.

On a terminal it runs in the interactive program, and reports when you leave it.
Nothing leaves this machine, and nothing in the directory is changed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runDemo(c.Context(), f)
		},
	}
	c.Flags().StringVar(&f.wire, "wire", "chat", "wire format: "+strings.Join(demoWires(), ", "))
	c.Flags().IntVar(&f.window, "window", 32768, "context window in `tokens` that the server enforces")
	c.Flags().StringVar(&f.cwd, "cwd", "", "work in this `directory`")
	c.Flags().BoolVar(&f.headless, "headless", false, "print each step as a line, also on a terminal")
	return c
}

// demoPath is the base URL of each wire behind the simulator's address.
var demoPath = map[string]string{
	"chat": "/v1", "responses": "/v1", "codex": "/backend-api/codex", "anthropic": "", "gemini": "", "bedrock": "",
}

func demoWires() []string {
	return []string{"chat", "responses", "codex", "anthropic", "gemini", "bedrock"}
}

// demoKey is the secret of the demo's server.
const demoKey = "demo-key"

// demoVolume is how many windows the tool output of the demo fills at least.
const demoVolume = 10

func (a *App) runDemo(ctx context.Context, f demoFlags) error {
	if _, ok := demoPath[f.wire]; !ok {
		return usageError(fmt.Errorf("there is no wire %q: choose one of %s", f.wire, strings.Join(demoWires(), ", ")))
	}
	if f.window < llm.MinContextWindow {
		return usageError(fmt.Errorf("--window %d is too small: Keen needs at least %d tokens", f.window, llm.MinContextWindow))
	}
	dir, err := workingDir(f.cwd)
	if err != nil {
		return usageError(err)
	}
	job, err := findDemoJob(ctx, dir, f.window)
	if err != nil {
		return failed(err)
	}
	defer job.cleanUp()
	d := &demo{app: a, f: f, job: job}
	if !f.headless && a.StdinTerminal && a.StdoutTerminal && a.Getenv("TERM") != "dumb" {
		return d.runOnScreen(ctx)
	}
	return d.runHeadless(ctx)
}

// demo is one run of the demo.
type demo struct {
	app *App
	f   demoFlags
	job demoJob

	server *simulator.Server
	client *llm.Client
	model  string

	// turn is the demo's turn as its events tell it, nil before it starts.
	turn   *repl.Turn
	tokens int // of tool output
	began  time.Time
	// took and records are set with the end of the turn.
	took    time.Duration
	records simulator.Records
}

// survey is the demo's model.
func (d *demo) survey() simulator.Script {
	return simulator.Survey{
		Passes: d.job.passes, Tool: "read_file", Lines: fileLines,
		Input: func(path string) string {
			input, err := json.Marshal(map[string]any{"path": path})
			if err != nil { // A string always marshals.
				return "{}"
			}
			return string(input)
		},
	}
}

// start starts the server of a model and makes the client that talks to it.
func (d *demo) start(ctx context.Context, model simulator.Script) error {
	server, err := simulator.New(simulator.Options{Window: d.f.window, Key: demoKey, Script: model})
	if err != nil {
		return err
	}
	d.server = server
	d.model = "scripted"
	if d.f.wire == "gemini" {
		d.model = "gemini-3-scripted"
	}
	s := settings{wire: d.f.wire, client: llm.ClientConfig{
		Provider: "simulator", Model: d.model, BaseURL: server.URL() + demoPath[d.f.wire], Credential: demoCredential{},
		ContextWindow: d.f.window, MaxOutputTokens: 8192,
	}}
	if d.f.wire == "bedrock" {
		s.client.Credential, s.client.AWS = nil, llm.AWSConfig{Region: "us-east-1", Credentials: demoCredential{}}
	}
	if d.client, err = s.newClient(ctx); err != nil {
		server.Close()
	}
	return err
}

// begin notes that the turn starts. state already holds the task.
func (d *demo) begin(state *appstate.AppState) {
	d.turn, d.began = repl.NewTurn(state, d.model), time.Now()
}

// follow takes in an event of the turn and returns what has to be stored.
func (d *demo) follow(e llm.StreamEvent) []session.Event {
	if e.Type == llm.StreamEventTypeToolEnded {
		d.tokens += simulator.CountTokens(e.Tool.Result.Output)
	}
	batch := d.turn.Fold(e)
	if d.turn.End() != nil {
		d.took, d.records = time.Since(d.began), d.server.Records()
	}
	return batch
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.app.Stdout, format+"\n", args...)
}
