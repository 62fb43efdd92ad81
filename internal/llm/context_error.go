package llm

import (
	"fmt"
	"strings"

	"keen/internal/llm/token"
	"keen/internal/tools"
)

// ContextError ends a turn whose next request does not fit the window, after
// everything Keen can do about it. It wraps [ErrContextWindowExceeded].
type ContextError struct {
	// Sizes are the limits that held, in tokens.
	Sizes Sizes
	// Estimate is the size of the request, unreduced, in tokens.
	Estimate int
	// Largest is the part of the request that takes the most room.
	Largest Part
	// Err says what found that the request does not fit.
	Err error
	// CompactionErr says why compaction did not help; nil when it ran and
	// the request was still too large.
	CompactionErr error
}

// PartKind names a part of a request.
type PartKind string

// The parts of a request.
const (
	PartSystem  PartKind = "system prompt and tools"
	PartTask    PartKind = "user message"
	PartSummary PartKind = "summary"
	PartAnswers PartKind = "assistant text"
	PartInput   PartKind = "tool input"
	PartOutput  PartKind = "tool result"
)

// Part is a part of a request with its size.
type Part struct {
	Kind PartKind
	// Name says which one, for tool inputs and results: the tool and what it
	// was called with.
	Name string
	// Tokens is the local estimate.
	Tokens int
}

func (p Part) String() string {
	switch p.Kind {
	case PartSystem:
		return fmt.Sprintf("the system prompt with its tools (about %d tokens)", p.Tokens)
	case PartTask:
		return fmt.Sprintf("your own message (about %d tokens)", p.Tokens)
	case PartOutput:
		return fmt.Sprintf("the result of %s (about %d tokens)", p.Name, p.Tokens)
	case PartInput:
		return fmt.Sprintf("the input of %s (about %d tokens)", p.Name, p.Tokens)
	}
	return fmt.Sprintf("the %s (about %d tokens)", p.Kind, p.Tokens)
}

// Error says what does not fit, what fills the window, and what to do.
func (e *ContextError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the next request (about %d tokens) does not fit the context window of %d tokens (%d for input, %d reserved for output)", e.Estimate, e.Sizes.Window, e.Sizes.Budget, e.Sizes.Output)
	if e.CompactionErr != nil {
		fmt.Fprintf(&b, ", and compaction did not help: %v", e.CompactionErr)
	}
	fmt.Fprintf(&b, ". The largest part is %s. %s", e.Largest, e.Advice())
	return b.String()
}

// Advice says what the user can do.
func (e *ContextError) Advice() string {
	const kept = " Everything up to here is in the session; your next message goes on from it."
	switch e.Largest.Kind {
	case PartSystem:
		return "Use fewer tools or shorter project instructions, or a model with a larger window."
	case PartTask:
		return "Send a shorter message, for instance by saving the text to a file and naming it, or use a model with a larger window."
	case PartOutput, PartInput:
		return "Ask for a smaller part of it, or use a model with a larger window." + kept
	}
	return "Use /compact, or a model with a larger window." + kept
}

// Unwrap returns the causes.
func (e *ContextError) Unwrap() []error {
	wrapped := []error{ErrContextWindowExceeded, e.Err}
	if e.CompactionErr != nil {
		wrapped = append(wrapped, e.CompactionErr)
	}
	return wrapped
}

// contextError makes the terminal error of a request that does not fit.
func (t *turn) contextError(cause, compaction error) error {
	return &ContextError{
		Sizes: t.c.sizes(), Estimate: t.estimate(), Largest: t.largestPart(),
		Err: cause, CompactionErr: compaction,
	}
}

// largestPart finds what takes the most room in the next request.
func (t *turn) largestPart() Part {
	parts := historyParts(t.history)
	fixed := t.conv.estimate()
	for _, p := range parts {
		fixed -= p.Tokens
	}
	largest := Part{Kind: PartSystem, Tokens: max(0, fixed)}
	answers := Part{Kind: PartAnswers}
	for _, p := range parts {
		if p.Kind == PartAnswers {
			answers.Tokens += p.Tokens
			p = answers
		}
		if p.Tokens > largest.Tokens {
			largest = p
		}
	}
	return largest
}

// historyParts lists what a history is made of.
func historyParts(history []Message) []Part {
	var parts []Part
	for _, m := range history {
		switch {
		case m.Role == RoleAssistant:
			parts = append(parts, Part{Kind: PartAnswers, Tokens: token.Estimate(m.Content)})
		case m.Compaction != nil:
			parts = append(parts,
				Part{Kind: PartSummary, Tokens: token.Estimate(m.Compaction.Summary)},
				Part{Kind: PartTask, Tokens: token.Estimate(m.Compaction.Task)})
		case m.Role == RoleUser:
			parts = append(parts, Part{Kind: PartTask, Tokens: token.Estimate(m.Content)})
		}
		for _, a := range m.ToolActivities {
			name := activityName(a)
			parts = append(parts,
				Part{Kind: PartInput, Name: name, Tokens: token.Estimate(string(a.Input))},
				Part{Kind: PartOutput, Name: name, Tokens: token.Estimate(historicalToolResult(a))})
		}
	}
	return parts
}

// activityName names a call for people, such as "read_file internal/x.go".
func activityName(a HistoricalToolActivity) string {
	if subject := tools.Describe(a.Tool, a.Input).Subject; subject != "" {
		return a.Tool + " " + shortName(subject)
	}
	return a.Tool
}

// shortName keeps a name to one line of an error message.
func shortName(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// largestOutput names the largest tool result of a history with what it was
// called with, or returns the empty string when there is none.
func largestOutput(history []Message) string {
	var largest Part
	for _, p := range historyParts(history) {
		if p.Kind == PartOutput && p.Tokens > largest.Tokens {
			largest = p
		}
	}
	if largest.Tokens == 0 {
		return ""
	}
	return "The result of " + largest.Name
}
