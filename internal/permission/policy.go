package permission

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// PolicyOptions are the rules of a [Policy].
type PolicyOptions struct {
	// AllowTools are names of tools that may do anything that is not denied,
	// dangerous things and things outside the working directory included.
	AllowTools []string
	// AllowAll allows every tool what stays inside the working directory.
	AllowAll bool
	// Patterns are what the user allowed for the project, see [Matches].
	Patterns []string
}

// Policy decides by rules alone. What the rules leave open it refuses and
// remembers, so that a headless run can say what to allow. It is safe for
// concurrent use.
type Policy struct {
	options PolicyOptions

	mu     sync.Mutex
	denied []Request
}

// NewPolicy returns a policy with the given rules.
func NewPolicy(o PolicyOptions) *Policy {
	o.AllowTools, o.Patterns = slices.Clone(o.AllowTools), slices.Clone(o.Patterns)
	return &Policy{options: o}
}

// Check says what the rules mean for a request and why. It remembers nothing.
func (p *Policy) Check(r Request) (Verdict, string) {
	switch {
	case r.Verdict == VerdictDeny:
		return VerdictDeny, r.Reason
	case r.Verdict == VerdictAllow:
		return VerdictAllow, "it only reads inside the working directory"
	case slices.Contains(p.options.AllowTools, r.Tool):
		return VerdictAllow, r.Tool + " is allowed"
	case p.options.AllowAll && !r.Outside:
		return VerdictAllow, "everything inside the working directory is allowed"
	case Matches(p.options.Patterns, r):
		return VerdictAllow, "the project allows it"
	}
	return VerdictAsk, r.Reason
}

// Approve allows what [Policy.Check] allows and refuses everything else,
// because there is nobody to ask.
func (p *Policy) Approve(ctx context.Context, r Request) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	verdict, reason := p.Check(r)
	switch verdict {
	case VerdictAllow:
		return Decision{Allowed: true}, nil
	case VerdictDeny:
		return Decision{Message: DeniedMessage(reason)}, nil
	}
	p.remember(r)
	return Decision{Message: fmt.Sprintf("this needs the user's permission (%s), and nobody can be asked in this run. "+
		"Nothing was done. Go on without it where that is possible, and say in your answer what could not be done", orUnknown(reason))}, nil
}

// Denied returns the requests that were refused only because nobody could be
// asked, each once, in the order of their first refusal. What is denied
// whatever the user allows is not among them.
func (p *Policy) Denied() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.denied)
}

func (p *Policy) remember(r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := func(d Request) bool { return d.Tool == r.Tool && d.Action == r.Action && d.Command == r.Command }
	if !slices.ContainsFunc(p.denied, same) {
		p.denied = append(p.denied, r)
	}
}

// DeniedMessage tells the model that something is forbidden for the given
// reason, whoever asks.
func DeniedMessage(reason string) string {
	return fmt.Sprintf("this is never allowed (%s). Nothing was done. Do not try it another way", orUnknown(reason))
}

func orUnknown(reason string) string {
	if reason == "" {
		return "no reason is known"
	}
	return reason
}
