package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keen/internal/cli/repl"
	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/simulator"
	"keen/internal/tools"
)

// demoFlags are the flags of `keen demo`.
type demoFlags struct {
	wire   string
	window int
	cwd    string
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

Nothing leaves this machine, and nothing in the directory is changed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runDemo(c.Context(), f)
		},
	}
	c.Flags().StringVar(&f.wire, "wire", "chat", "wire format: "+strings.Join(demoWires(), ", "))
	c.Flags().IntVar(&f.window, "window", 32768, "context window in `tokens` that the server enforces")
	c.Flags().StringVar(&f.cwd, "cwd", "", "work in this `directory`")
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
	if err := d.start(ctx); err != nil {
		return failed(err)
	}
	defer d.server.Close()
	if err := d.run(ctx); err != nil {
		return err
	}
	return d.report()
}

// demo is one run of the demo.
type demo struct {
	app *App
	f   demoFlags
	job demoJob

	server *simulator.Server
	client *llm.Client
	kit    *toolkit
	model  string

	turn   *repl.Turn
	tokens int // of tool output
	step   *llm.StepInfo
	began  time.Time
}

// start starts the server and makes the client that talks to it.
func (d *demo) start(ctx context.Context) error {
	server, err := simulator.New(simulator.Options{
		Window: d.f.window, Key: demoKey,
		Script: simulator.Survey{
			Passes: d.job.passes, Tool: "read_file", Lines: fileLines,
			Input: func(path string) string {
				input, err := json.Marshal(map[string]any{"path": path})
				if err != nil { // A string always marshals.
					return "{}"
				}
				return string(input)
			},
		},
	})
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
	if d.client, err = s.newClient(ctx); err == nil {
		d.kit, err = newToolkit(toolkitOptions{dir: d.job.dir})
	}
	if err != nil {
		server.Close()
	}
	return err
}

// run runs the turn and shows each step.
func (d *demo) run(ctx context.Context) error {
	d.say("Keen demo: the agent and its tools are real, the model is a script behind a local server")
	d.say("(%s wire, %s). It reads %d files of %s %s over,", d.f.wire, windowText(d.f.window), len(d.job.files), d.job.name, times(d.job.passes))
	d.say("more than %d times what its context window holds.\n", demoVolume)
	state := newState(d.job.dir, nil, headless)
	state.AddUser(d.job.task)
	d.turn = repl.NewTurn(state, d.model)
	d.began = time.Now()
	root, err := os.MkdirTemp("", "keen-demo-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	log, err := demoSession(root, d.job)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = log.Close() }()
	events, err := d.client.StreamChat(ctx, state.Request(), d.kit.registry, llm.StreamOptions{SessionID: log.ID()})
	if err != nil {
		return failed(err)
	}
	var storeErr error
	for e := range events {
		if batch := d.turn.Fold(e); len(batch) > 0 && storeErr == nil {
			storeErr = log.Append(batch...)
		}
		d.show(e)
	}
	if storeErr != nil {
		return failed(storeErr)
	}
	switch end := d.turn.End(); {
	case errors.Is(end.Err, context.Canceled):
		return &exitError{code: ExitInterrupted, err: errors.New("the demo was interrupted")}
	case end.Err != nil:
		return failed(end.Err)
	}
	return nil
}

// demoSession stores the demo's turn like any other.
func demoSession(root string, job demoJob) (*session.Log, error) {
	store, err := session.NewStore(root, job.dir)
	if err != nil {
		return nil, err
	}
	log, err := store.Create(session.CreateOptions{KeenVersion: Version, Title: "demo"})
	if err != nil {
		return nil, err
	}
	return log, log.Append(session.Event{Kind: session.KindUserMessage, Text: job.task})
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.app.Stdout, format+"\n", args...)
}

// show shows one event.
func (d *demo) show(e llm.StreamEvent) {
	switch e.Type {
	case llm.StreamEventTypeStepStarted:
		d.step = e.Step
	case llm.StreamEventTypeToolEnded:
		d.tokens += simulator.CountTokens(e.Tool.Result.Output)
		label := tools.Describe(e.Tool.Call.Name, e.Tool.Call.Input).Label
		if s := e.Tool.Result.Display.Summary; s != "" {
			label += ", " + s
		}
		d.say("%5d  %s %s  %s", d.step.Number, gauge(d.step.ContextTokens, d.step.Budget), mark(e.Tool.Result.Status), label)
	case llm.StreamEventTypeAutoCompactionStarted:
		d.say("       %s  context full: compacting inside the turn ...", strings.Repeat(" ", gaugeWidth+2))
	case llm.StreamEventTypeAutoCompactionApplied:
		d.say("       %s  compaction %d done, the same turn goes on", strings.Repeat(" ", gaugeWidth+2), d.turn.Compactions())
	case llm.StreamEventTypeAutoCompactionFailed:
		d.say("       compaction failed: %v", e.AutoCompaction.Err)
	case llm.StreamEventTypeRetry:
		d.say("       retry: %v", e.Retry.Err)
	case llm.StreamEventTypeNotice:
		d.say("       note: %s", e.Text)
	}
}

func mark(s tools.Status) string {
	if s == tools.StatusSuccess {
		return "✓"
	}
	return "✗"
}

// gaugeWidth is the width of the context gauge in characters.
const gaugeWidth = 20

// gauge draws how full the budget is.
func gauge(used, budget int) string {
	filled := min(gaugeWidth, used*gaugeWidth/max(1, budget))
	return "[" + strings.Repeat("█", filled) + strings.Repeat("·", gaugeWidth-filled) + "]"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func windowText(tokens int) string { return fmt.Sprintf("a window of %d tokens", tokens) }
