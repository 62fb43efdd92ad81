package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"keen/internal/permission"
)

// bash runs shell commands.
type bash struct{ workspace }

const (
	bashTimeout    = 120 * time.Second
	bashMaxTimeout = 10 * time.Minute
)

type bashInput struct {
	Command     string `json:"command"`
	TimeoutMS   number `json:"timeout_ms,omitempty"`
	Description string `json:"description,omitempty"`
}

// Spec implements [Tool].
func (bash) Spec() Spec {
	return Spec{
		Name: bashName,
		Description: "Run a command with bash in the working directory. Every call is a new shell: variables and cd do not last. " +
			"Standard input is empty. Output and errors come in one text; a large one is cut in the middle and kept whole in a file that " +
			"read_file and grep can open. What still runs when the command ends is stopped, so nothing can be left in the background. " +
			"Use read_file, grep, glob and edit_file instead of cat, grep, find and sed.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","description":"The command"},` +
			`"timeout_ms":{"type":"integer","minimum":1,"maximum":600000,"description":"Time after which it is stopped, in milliseconds (default 120000)"},` +
			`"description":{"type":"string","description":"What it does, in a few words, for the user"}},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

// Run implements [Tool].
func (t bash) Run(ctx context.Context, input json.RawMessage, report func(Progress)) (Result, error) {
	in, err := decode[bashInput](input)
	if err != nil {
		return Result{}, err
	}
	timeout := time.Duration(in.TimeoutMS) * time.Millisecond
	switch {
	case strings.TrimSpace(in.Command) == "":
		return Result{}, errors.New("the command is empty")
	case strings.ContainsRune(in.Command, 0):
		return Result{}, errors.New("the command holds a NUL byte")
	case timeout < 0 || timeout > bashMaxTimeout:
		return Result{}, fmt.Errorf("timeout_ms must be 1 to %d", bashMaxTimeout.Milliseconds())
	case timeout == 0:
		timeout = bashTimeout
	}
	if err := t.approve(ctx, t.request(in)); err != nil {
		return Result{}, err
	}
	out := &output{dir: t.spillDir, report: report}
	p := process{command: in.Command, dir: t.guard.Dir(), timeout: timeout, out: out}
	end, err := p.run(ctx)
	text := out.close()
	if err != nil {
		return Result{Output: text}, err
	}
	return bashResult(end, out, text, timeout), nil
}

// request says what the command wants to do.
func (t bash) request(in bashInput) permission.Request {
	c := permission.ClassifyCommand(in.Command, t.guard)
	return permission.Request{
		Tool: bashName, Action: cutRunes("Run "+oneLine(in.Command), maxLabel), Command: in.Command, Commands: c.Commands,
		Verdict: c.Verdict, Paths: c.Paths, Write: c.Verdict != permission.VerdictAllow, Outside: c.Outside, Dangerous: c.Dangerous,
		Reason: c.Reason, Pattern: c.Pattern,
	}
}

// bashResult words how a command ended. A non-zero exit is a failed call whose
// output the model reads like any other.
func bashResult(end ending, out *output, text string, timeout time.Duration) Result {
	r := Result{Status: StatusSuccess, ExitCode: end.exitCode}
	r.Display.Summary = plural(out.lines, "line")
	if out.total == 0 {
		text, r.Display.Summary = "(no output)", "no output"
	}
	var notes []string
	switch {
	case end.timedOut:
		r.Status, r.Display.Summary = StatusError, fmt.Sprintf("stopped after %v", timeout)
		notes = append(notes, fmt.Sprintf("The command was stopped after %v, its timeout. Set timeout_ms for a longer one, at most %d.", timeout, bashMaxTimeout.Milliseconds()))
	case end.signal != "":
		r.Status, r.Display.Summary = StatusError, end.signal
		notes = append(notes, fmt.Sprintf("The command was ended by a signal: %s.", end.signal))
	case *end.exitCode != 0:
		r.Status, r.Display.Summary = StatusError, fmt.Sprintf("exit %d", *end.exitCode)
		notes = append(notes, fmt.Sprintf("Exit code %d.", *end.exitCode))
	}
	if end.leftovers {
		notes = append(notes, "Processes that were still running in the background when the command ended were stopped.")
	}
	r.Output = text
	if len(notes) > 0 {
		r.Output = joinOutput(text, "["+strings.Join(notes, " ")+"]")
	}
	return r
}
