package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

// runHeadless runs the turn and prints each step.
func (d *demo) runHeadless(ctx context.Context) error {
	if err := d.start(ctx, d.survey()); err != nil {
		return failed(err)
	}
	defer d.server.Close()
	if err := d.printSteps(ctx); err != nil {
		return err
	}
	return d.report()
}

func (d *demo) printSteps(ctx context.Context) error {
	d.say("Keen demo: the agent and its tools are real, the model is a script behind a local server")
	d.say("(%s wire, %s). It reads %d files of %s %s over,", d.f.wire, windowText(d.f.window), len(d.job.files), d.job.name, times(d.job.passes))
	d.say("more than %d times what its context window holds.\n", demoVolume)
	kit, err := newToolkit(toolkitOptions{dir: d.job.dir})
	if err != nil {
		return failed(err)
	}
	state := newState(d.job.dir, nil, headless)
	state.AddUser(d.job.task)
	d.begin(state)
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
	events, err := d.client.StreamChat(ctx, state.Request(), kit.registry, llm.StreamOptions{SessionID: log.ID()})
	if err != nil {
		return failed(err)
	}
	var storeErr error
	var step *llm.StepInfo
	for e := range events {
		if batch := d.follow(e); len(batch) > 0 && storeErr == nil {
			storeErr = log.Append(batch...)
		}
		if e.Type == llm.StreamEventTypeStepStarted {
			step = e.Step
		}
		d.show(e, step)
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

// show prints one event of a step.
func (d *demo) show(e llm.StreamEvent, step *llm.StepInfo) {
	switch e.Type {
	case llm.StreamEventTypeToolEnded:
		label := tools.Describe(e.Tool.Call.Name, e.Tool.Call.Input).Label
		if s := e.Tool.Result.Display.Summary; s != "" {
			label += ", " + s
		}
		d.say("%5d  %s %s  %s", step.Number, gauge(step.ContextTokens, step.Budget), mark(e.Tool.Result.Status), label)
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
