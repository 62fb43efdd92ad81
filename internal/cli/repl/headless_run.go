package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"keen/internal/cli/repl/appstate"
	"keen/internal/llm"
	"keen/internal/llm/apierror"
	"keen/internal/permission"
	"keen/internal/session"
	"keen/internal/tools"
)

// HeadlessFormat says how a headless run prints its result.
type HeadlessFormat string

// The formats of headless runs.
const (
	// FormatText prints the answer and nothing else.
	FormatText HeadlessFormat = "text"
	// FormatJSON prints one JSON document, a [HeadlessResult], at the end.
	FormatJSON HeadlessFormat = "json"
	// FormatStreamJSON prints a line of JSON for each event as it happens,
	// and the result as the last line.
	FormatStreamJSON HeadlessFormat = "stream-json"
)

// Appender is the session log of a run. Append stores a batch or nothing.
type Appender interface {
	Append(events ...session.Event) error
}

// HeadlessRun is one turn without a screen.
type HeadlessRun struct {
	Client   llm.LLMClient
	Registry *tools.Registry
	State    *appstate.AppState
	Log      Appender
	// Prepare makes the message of the prompt; nil sends it as it is.
	Prepare Prepare
	// Companion goes along with the turn; nil for none.
	Companion llm.Companion
	// SessionID names the session in the result and in requests.
	SessionID string
	// Model names the model in the result and in the session.
	Model  string
	Format HeadlessFormat
	// Stdout takes the result, Progress a line for each thing that happens;
	// a nil Progress shows none. Warnings go to Warnings.
	Stdout, Progress, Warnings io.Writer
	// Denied returns the requests that were denied for lack of a permission.
	Denied func() []permission.Request
}

// HeadlessResult is what a run prints in the JSON formats.
type HeadlessResult struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	// Status is done, incomplete, interrupted or error.
	Status session.Outcome `json:"status"`
	// Text is the answer: what was said before checkpoints and after, in
	// order.
	Text string `json:"text"`
	// Usage sums the run, compactions included; null when nothing was
	// reported.
	Usage       *llm.Usage `json:"usage"`
	Steps       int        `json:"steps"`
	Compactions int        `json:"compactions"`
	DurationMS  int64      `json:"duration_ms"`
	// Denied lists the tools that needed a permission nobody gave.
	Denied []DeniedCall `json:"permissions_denied,omitempty"`
	// Error is null when the run is done.
	Error *HeadlessError `json:"error"`

	err error
}

// DeniedCall is a call that needed a permission.
type DeniedCall struct {
	Tool   string `json:"tool"`
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
}

// HeadlessError says why a run is not done.
type HeadlessError struct {
	// Kind is context_limit, interrupted, or the kind of the provider's
	// error; other when there is none.
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Err returns the error that ended the run, nil when it is done.
func (r HeadlessResult) Err() error { return r.err }

// Run sends a prompt, follows the turn to its end and prints the result. What
// was done is stored and printed whatever the end. An error is returned when
// the turn could not start or the result could not be printed; how the turn
// itself ended is in the result.
func (r *HeadlessRun) Run(ctx context.Context, prompt string) (HeadlessResult, error) {
	message, err := r.Prepare.prepare(ctx, prompt)
	for _, note := range message.Notes {
		r.warn("%s", note)
	}
	if err != nil {
		return HeadlessResult{}, err
	}
	if err := r.Log.Append(message.event(prompt)); err != nil {
		return HeadlessResult{}, fmt.Errorf("store the prompt: %w", err)
	}
	r.State.AddUser(message.Text, message.Attachments...)
	start := time.Now()
	events, err := r.Client.StreamChat(ctx, r.State.Request(), r.Registry, llm.StreamOptions{SessionID: r.SessionID, Companion: r.Companion})
	if err != nil {
		return HeadlessResult{}, err
	}
	out := &headlessOutput{run: r}
	out.line(map[string]any{"type": "session", "session_id": r.SessionID, "model": r.Model})
	turn := NewTurn(r.State, r.Model)
	steps, broken := 0, false
	for e := range events {
		if e.Type == llm.StreamEventTypeStepStarted {
			steps++
		}
		if batch := turn.Fold(e); len(batch) > 0 && !broken {
			if err := r.Log.Append(batch...); err != nil {
				// The run itself is sound; the user has to know that a
				// crash from here on loses more than a step.
				broken = true
				r.warn("the session cannot be written, the run goes on in memory: %v", err)
			}
		}
		out.event(e, turn)
	}
	result := r.result(turn, steps, time.Since(start))
	return result, out.result(result)
}

func (r *HeadlessRun) warn(format string, args ...any) {
	if r.Warnings != nil {
		_, _ = fmt.Fprintf(r.Warnings, "keen: "+format+"\n", args...)
	}
}

func (r *HeadlessRun) result(turn *Turn, steps int, took time.Duration) HeadlessResult {
	end := turn.End()
	result := HeadlessResult{
		Type: "result", SessionID: r.SessionID, Model: r.Model, Status: outcome(*end), Text: turn.Answer(),
		Steps: steps, Compactions: turn.Compactions(), DurationMS: took.Milliseconds(), err: end.Err,
	}
	if usage, known := turn.Handler().Usage(); known {
		result.Usage = &usage
	}
	if end.Err != nil {
		result.Error = &HeadlessError{Kind: errorKind(end.Err), Message: end.Err.Error()}
	}
	if r.Denied != nil {
		for _, d := range r.Denied() {
			result.Denied = append(result.Denied, DeniedCall{Tool: d.Tool, Action: d.Action, Reason: d.Reason})
		}
	}
	return result
}

func errorKind(err error) string {
	var e *apierror.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, llm.ErrContextWindowExceeded):
		return "context_limit"
	case errors.Is(err, llm.ErrOutputLimit):
		return "output_limit"
	case errors.As(err, &e):
		return string(e.Kind)
	}
	return "other"
}

// headlessOutput prints a run in its format.
type headlessOutput struct {
	run *HeadlessRun
	err error
}

// line prints one line of the stream format.
func (o *headlessOutput) line(v any) {
	if o.run.Format != FormatStreamJSON || o.err != nil {
		return
	}
	o.err = json.NewEncoder(o.run.Stdout).Encode(v)
}

// result prints the result.
func (o *headlessOutput) result(r HeadlessResult) error {
	switch o.run.Format {
	case FormatText:
		if r.Text != "" {
			_, o.err = fmt.Fprintln(o.run.Stdout, r.Text)
		}
	case FormatJSON:
		o.err = json.NewEncoder(o.run.Stdout).Encode(r)
	case FormatStreamJSON:
		o.line(r)
	}
	if o.err != nil {
		return fmt.Errorf("print the result: %w", o.err)
	}
	return nil
}

// event shows one event in the stream format and as progress. Nothing of a
// compaction but the fact that it happens is ever shown.
func (o *headlessOutput) event(e llm.StreamEvent, turn *Turn) {
	switch e.Type {
	case llm.StreamEventTypeStepStarted:
		o.line(map[string]any{"type": "step", "number": e.Step.Number, "context_tokens": e.Step.ContextTokens, "budget": e.Step.Budget, "window": e.Step.Window})
	case llm.StreamEventTypeChunk:
		o.line(map[string]any{"type": "text", "text": e.Text})
	case llm.StreamEventTypeReasoningChunk:
		o.line(map[string]any{"type": "reasoning", "text": e.Text})
	case llm.StreamEventTypeRetry:
		o.line(map[string]any{"type": "retry", "attempt": e.Retry.Attempt, "delay_ms": e.Retry.Delay.Milliseconds(), "error": e.Retry.Err.Error()})
		o.progress("retry %d in %v: %v", e.Retry.Attempt, e.Retry.Delay.Round(time.Millisecond), e.Retry.Err)
	case llm.StreamEventTypeToolStarted:
		o.line(map[string]any{"type": "tool_start", "id": e.Tool.Call.ID, "tool": e.Tool.Call.Name, "input": e.Tool.Call.Input})
	case llm.StreamEventTypeToolEnded:
		o.toolEnded(e.Tool)
	case llm.StreamEventTypeUsage:
		o.line(map[string]any{"type": "usage", "usage": e.Usage})
	case llm.StreamEventTypeNotice:
		o.line(map[string]any{"type": "notice", "text": e.Text})
		o.progress("note: %s", e.Text)
	case llm.StreamEventTypeAutoCompactionStarted:
		o.line(map[string]any{"type": "compaction", "phase": "started", "forced": e.AutoCompaction.Forced})
	case llm.StreamEventTypeAutoCompactionApplied:
		o.line(map[string]any{"type": "compaction", "phase": "applied"})
		o.progress("compaction %d", turn.Compactions())
	case llm.StreamEventTypeAutoCompactionCancelled:
		o.line(map[string]any{"type": "compaction", "phase": "cancelled"})
	case llm.StreamEventTypeAutoCompactionFailed:
		o.line(map[string]any{"type": "compaction", "phase": "failed", "error": e.AutoCompaction.Err.Error()})
		o.progress("compaction failed: %v", e.AutoCompaction.Err)
	}
}

func (o *headlessOutput) toolEnded(t *llm.ToolEvent) {
	r := t.Result
	line := map[string]any{"type": "tool_end", "id": t.Call.ID, "tool": t.Call.Name, "status": r.Status, "summary": r.Display.Summary, "duration_ms": r.Duration.Milliseconds()}
	if r.ExitCode != nil {
		line["exit_code"] = *r.ExitCode
	}
	o.line(line)
	mark := "✓"
	if r.Status != tools.StatusSuccess {
		mark = "✗"
	}
	label := tools.Describe(t.Call.Name, t.Call.Input).Label
	if r.Display.Summary != "" {
		label += ", " + r.Display.Summary
	}
	o.progress("%s %s (%v)", mark, label, r.Duration.Round(time.Millisecond))
}

func (o *headlessOutput) progress(format string, args ...any) {
	if o.run.Progress != nil {
		_, _ = fmt.Fprintf(o.run.Progress, format+"\n", args...)
	}
}
