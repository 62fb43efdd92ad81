// Package tools holds what the model can do: one file per tool, the registry
// that runs them, and the types a tool call and its result travel in.
//
// A tool is a [Tool]: it describes itself with a [Spec], and runs one call.
// The [Registry] is the only thing that calls Run: it finds the tool,
// validates the input, recovers panics and turns every ending into exactly
// one [Result]. Tools ask for permission through the permission package
// before they act and resolve paths through the filesystem package.
//
// The package knows nothing of models, sessions or screens. Tests drive tools
// through a Registry in a temporary directory.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Spec is what the model is told about a tool.
type Spec struct {
	// Name is unique within a registry, in lower snake case.
	Name string
	// Description tells the model when and how to use the tool.
	Description string
	// Schema is a JSON Schema object that describes the input.
	Schema json.RawMessage
}

// Call is one request of the model to run a tool.
type Call struct {
	// ID pairs the call with its result. It is unique within a turn.
	ID string
	// Name is the tool's name as the model wrote it; it may be unknown.
	Name string
	// Input is a JSON object. It is always valid JSON: adapters wrap what is
	// not (see llm.NormalizeInput), and the registry refuses it with a result
	// that tells the model.
	Input json.RawMessage
}

// Status says how a call ended.
type Status string

// The ways a call ends.
const (
	// StatusSuccess means that the tool did what was asked.
	StatusSuccess Status = "success"
	// StatusError means that the tool ran and failed, or could not run.
	StatusError Status = "error"
	// StatusDenied means that permission was not given; nothing was done.
	StatusDenied Status = "denied"
	// StatusCancelled means that the turn was interrupted before or while
	// the tool ran.
	StatusCancelled Status = "cancelled"
)

// Result is the one answer to a [Call].
type Result struct {
	// CallID is the ID of the call that this answers.
	CallID string
	// Tool is the name of the tool.
	Tool string
	// Status says how the call ended.
	Status Status
	// Output is what the model reads: valid UTF-8, at most
	// [MaxOutputBytes] bytes.
	Output string
	// ExitCode is the exit code of a command, nil for tools that run none.
	ExitCode *int
	// Display is for the screen only; it is never sent to the model.
	Display Display
	// State is what the session has to remember of the call, such as the
	// list of what is left to do. It is stored with the step.
	State []State
	// Duration is the time the tool ran, waiting for permission included.
	Duration time.Duration
}

// Display is what a front end may show of a result beside the call itself.
type Display struct {
	// Summary is one short phrase, such as "120 lines" or "3 matches".
	Summary string
	// Diff is a unified diff of the file the tool changed, or empty.
	Diff string
}

// State is something that a session remembers beside its conversation. A later
// one of the same name takes the place of an earlier one.
type State struct {
	// Name says whose it is, such as "todo".
	Name string
	// Value is valid JSON; null takes the state away.
	Value json.RawMessage
}

// Progress is a piece of output that a running tool shows before it ends.
type Progress struct {
	// Text is a part of the output, in order. It may end inside a line.
	Text string
}

// Tool is one thing the model can do.
//
// Run does one call. Input is a valid JSON object. Run returns when the work
// is done or ctx is cancelled, whichever is first, and leaves no process and
// no goroutine behind. It may call report from any goroutine until it
// returns; report must not block for long. An error becomes the result: an
// error that wraps [ErrDenied] a denied one, a context error a cancelled one,
// any other a failed one whose text the model reads. Calls of one
// turn do not overlap, but several turns may use a tool at once: Run is safe
// for concurrent use.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, input json.RawMessage, report func(Progress)) (Result, error)
}

// ErrDenied is wrapped by an error that a tool returns when the permission it
// asked for was not given.
var ErrDenied = errors.New("permission denied")

// MaxOutputBytes bounds [Result.Output]: the registry clips what is longer,
// keeping its head and tail. Tools that expect large output spill it to a file
// first and stay far below.
const MaxOutputBytes = 256 << 10
