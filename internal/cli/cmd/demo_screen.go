package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"keen/internal/cli/repl"
	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/filesystem"
	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/session"
	"keen/internal/simulator"
	"keen/internal/tools"
)

// How long the demo's model takes on the screen for a step and for a summary:
// without it nobody could see what happens. After some summaries everybody has
// seen it, and the others are faster.
const (
	demoStepTime        = 20 * time.Millisecond
	demoSummaryTime     = 1200 * time.Millisecond
	demoFastSummaryTime = 300 * time.Millisecond
	demoSlowSummaries   = 3
)

// unhurried makes a model take its time.
func unhurried(model simulator.Script) simulator.Script {
	summaries := 0
	return simulator.ScriptFunc(func(r *simulator.Request) simulator.Reply {
		wait := demoStepTime
		if r.Compaction() {
			wait = demoFastSummaryTime
			if summaries++; summaries <= demoSlowSummaries {
				wait = demoSummaryTime
			}
		}
		done := make(chan struct{})
		time.AfterFunc(wait, func() { close(done) })
		reply := model.Reply(r)
		reply.Fault = simulator.Stall(1, done, nil)
		return reply
	})
}

// runOnScreen runs the demo in the interactive program, and reports below it
// when the user has left.
func (d *demo) runOnScreen(ctx context.Context) error {
	root, err := os.MkdirTemp("", "keen-demo-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	store, err := session.NewStore(root, d.job.dir)
	if err != nil {
		return failed(err)
	}
	guard, err := filesystem.NewGuard(d.job.dir, filesystem.Options{Readable: []string{spillDir()}})
	if err != nil {
		return failed(err)
	}
	if err := d.start(ctx, unhurried(d.survey())); err != nil {
		return failed(err)
	}
	defer d.server.Close()
	client := &demoClient{Client: d.client, demo: d, left: make(chan struct{})}
	err = repl.Run(ctx, d.screenOptions(client, store, guard), d.app.Stdin, d.app.Stdout)
	client.leave()
	if err != nil {
		return failed(err)
	}
	switch {
	case d.turn == nil || d.turn.End() == nil || errors.Is(d.turn.End().Err, context.Canceled):
		d.say("The demo was left before its end, so there is no report. Run it again: keen demo")
		return nil
	case d.turn.End().Err != nil:
		return failed(d.turn.End().Err)
	}
	return d.report()
}

func (d *demo) screenOptions(client *demoClient, store *session.Store, guard *filesystem.Guard) repl.Options {
	home, _ := os.UserHomeDir() // Without one, paths are shown whole.
	return repl.Options{
		NewClient: func(context.Context, repl.ModelChoice) (repl.Client, error) { return client, nil },
		NewRegistry: func(approver permission.Approver) *tools.Registry {
			return tools.NewRegistry(tools.Standard(tools.Options{Dir: d.job.dir, Guard: guard, Approver: approver, SpillDir: spillDir()})...)
		},
		NewState: func(history []llm.Message) *appstate.AppState { return newState(d.job.dir, history, interactive) },
		Sessions: demoSessions{repl.StoredSessions{Store: store, Version: Version}},
		Config:   &demoConfig{model: d.model},
		Rules:    permission.NewPolicy(permission.PolicyOptions{}), // Reading needs no question.
		Files:    func(ctx context.Context) ([]string, error) { return repl.ProjectFiles(ctx, d.job.dir) },
		Branch:   func(context.Context) string { return gitBranch(d.job.dir) },
		Dir:      d.job.dir, Home: home, Version: Version, Environ: os.Environ(),
		Prompt: d.job.task,
		Notices: []string{
			"This is the demo: the agent and its tools are real, the model is a script behind a local server.",
			fmt.Sprintf("It reads %d files of %s %s over, more than %d times what its context window holds.", len(d.job.files), d.job.name, times(d.job.passes), demoVolume),
			"Leave with /exit when it is done: the report comes then.",
		},
	}
}

// demoClient is the demo's client, which lets the demo follow its first turn.
type demoClient struct {
	*llm.Client
	demo *demo
	// left is closed when nobody reads events any more.
	left     chan struct{}
	followed sync.WaitGroup

	mu sync.Mutex
	// done says that there is no turn to follow any more: there was one, or
	// the user has left.
	done bool
}

// StreamChat implements llm.LLMClient.
func (c *demoClient) StreamChat(ctx context.Context, messages []llm.Message, registry *tools.Registry, o llm.StreamOptions) (<-chan llm.StreamEvent, error) {
	events, err := c.Client.StreamChat(ctx, messages, registry, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || o.OneShot || c.done {
		return events, err
	}
	c.done = true
	c.demo.begin(appstate.New("", messages))
	out := make(chan llm.StreamEvent)
	c.followed.Go(func() {
		defer close(out)
		for e := range events {
			c.demo.follow(e)
			select {
			case out <- e:
			case <-c.left:
			}
		}
	})
	return out, nil
}

// leave waits for the end of the turn that is followed, which was interrupted
// at the latest when the user left.
func (c *demoClient) leave() {
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	close(c.left)
	c.followed.Wait()
}

// demoSessions stores sessions that nobody can come back to, because they are
// removed with the end of the demo.
type demoSessions struct{ repl.StoredSessions }

// Create implements repl.Sessions.
func (s demoSessions) Create() (repl.Log, error) {
	log, err := s.StoredSessions.Create()
	if err != nil {
		return nil, err
	}
	return namelessLog{log}, nil
}

type namelessLog struct{ repl.Log }

// ID implements repl.Log.
func (namelessLog) ID() string { return "" }

// demoConfig is a configuration that is not stored.
type demoConfig struct {
	model string

	mu        sync.Mutex
	reasoning render.ReasoningView
}

// Choice implements repl.Config.
func (c *demoConfig) Choice() repl.ModelChoice { return repl.ModelChoice{Name: c.model} }

// SetChoice implements repl.Config. There is only one model.
func (c *demoConfig) SetChoice(repl.ModelChoice) error { return nil }

// Reasoning implements repl.Config.
func (c *demoConfig) Reasoning() render.ReasoningView {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reasoning
}

// SetReasoning implements repl.Config.
func (c *demoConfig) SetReasoning(view render.ReasoningView) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reasoning = view
	return nil
}
