// Package permission decides whether a tool may do what it is about to do.
//
// A tool describes its intent as a [Request] and hands it to an [Approver],
// the one interface between tools and whoever decides: [Policy] decides by
// rules alone (headless runs), and the REPL wraps a policy and asks the user
// about what the rules leave open. [ClassifyCommand] reads a shell command and
// says what it may touch.
//
// The package shows nothing and runs nothing.
package permission

import "context"

// Verdict is what rules say about a request.
type Verdict string

// The verdicts.
const (
	// VerdictAllow lets the tool go on.
	VerdictAllow Verdict = "allow"
	// VerdictAsk leaves it to the user.
	VerdictAsk Verdict = "ask"
	// VerdictDeny forbids it, whatever the user allowed elsewhere.
	VerdictDeny Verdict = "deny"
)

// Request is one thing a tool wants to do.
type Request struct {
	// Tool is the tool's name.
	Tool string
	// Verdict is what the tool knows by itself: allow for what only reads
	// inside the working directory, deny for what the file guard forbids.
	// Empty means ask.
	Verdict Verdict
	// Action says in a few words what will happen, such as "Edit main.go".
	Action string
	// Command is the shell command, for tools that run one.
	Command string
	// Commands are the single commands within Command that need the
	// permission, one line each, in the form that patterns match. It is
	// empty when something else than a command needs it, such as a
	// redirection; no pattern matches then.
	Commands []string
	// Paths are the absolute, symlink-free paths that the tool touches.
	Paths []string
	// Write says that the tool changes what it touches.
	Write bool
	// Outside says that something lies outside the working directory.
	Outside bool
	// Dangerous says that the effect may be hard to undo.
	Dangerous bool
	// Reason says why it is asked about, such as "runs rm".
	Reason string
	// Pattern is what an "allow for this project" would allow, such as
	// "go test *"; empty when there is no sensible one.
	Pattern string
	// Diff is the change as a unified diff, where the tool knows it.
	Diff string
}

// Decision is the answer to a request.
type Decision struct {
	// Allowed lets the tool go on.
	Allowed bool
	// Message is for the model when it is not allowed: why, and what to do
	// instead.
	Message string
}

// Approver decides about requests. Approve may block until the user answers;
// it returns ctx's error when that ends first. It is safe for concurrent use.
type Approver interface {
	Approve(ctx context.Context, r Request) (Decision, error)
}
