package simulator

import (
	"fmt"
	"slices"
	"sync"
)

// MarathonOptions describe a long job.
type MarathonOptions struct {
	// Steps is how many times the model asks for calls.
	Steps int
	// Parallel is how many calls it asks for at once; 0 means 1.
	Parallel int
	// Tool is the name of the tool it calls.
	Tool string
	// Input returns the input of a call, a JSON object: step counts from 1,
	// call within the step from 0. Nil means an empty object.
	Input func(step, call int) string
	// Say returns what the model says before the calls of a step, and Think
	// what it thinks; nil means nothing.
	Say, Think func(step int) string
	// Final is the answer after the last step.
	Final string
	// SummaryTokens is the size that summaries have at most, 0 means 400.
	SummaryTokens int
}

// Marathon is a script that asks for many calls, one step after the other,
// and then answers. It keeps count itself, so that no compaction can confuse
// it: a step is over when its results come back, or a compacted context that
// can only have been written after them. Requests that were rejected or whose
// answer was lost do not count; the step is asked for again.
type Marathon struct {
	o MarathonOptions

	mu   sync.Mutex
	done int
	// pending is what was asked for last, and wrapper the compacted context
	// of the request that asked.
	pending []Call
	wrapper string
	// summaries counts the summaries written, lines says what was done.
	summaries int
	lines     []string
}

// NewMarathon returns a script for a long job.
func NewMarathon(o MarathonOptions) *Marathon {
	if o.Parallel <= 0 {
		o.Parallel = 1
	}
	if o.SummaryTokens <= 0 {
		o.SummaryTokens = defaultSummaryTokens
	}
	return &Marathon{o: o}
}

// Done returns the number of steps whose results came back.
func (m *Marathon) Done() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// Reply implements [Script].
func (m *Marathon) Reply(r *Request) Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Compaction() {
		return m.summary()
	}
	if len(m.pending) > 0 && m.returned(r) {
		m.done++
		m.lines = append(m.lines, fmt.Sprintf("Step %d of %d: %s %s", m.done, m.o.Steps, m.o.Tool, m.pending[0].Input))
	}
	m.pending = nil
	switch {
	case m.done >= m.o.Steps:
		return Text(m.o.Final)
	case !r.OffersTool(m.o.Tool):
		return Text(fmt.Sprintf("I need the tool %s and it is not offered.", m.o.Tool))
	}
	return m.ask(r)
}

// returned reports whether the request shows that the pending calls were run.
func (m *Marathon) returned(r *Request) bool {
	results := r.Results()
	if len(results) == 0 {
		wrapper := r.Wrapper()
		return wrapper != "" && wrapper != m.wrapper
	}
	if len(results) != len(m.pending) {
		return false
	}
	for i, result := range results {
		if result.CallID != "" && result.CallID != m.pending[i].ID {
			return false
		}
	}
	return true
}

// ask asks for the calls of the next step. They are pending only if the answer
// will arrive.
func (m *Marathon) ask(r *Request) Reply {
	step := m.done + 1
	reply := Reply{}
	for i := range m.o.Parallel {
		input := "{}"
		if m.o.Input != nil {
			input = m.o.Input(step, i)
		}
		reply.Calls = append(reply.Calls, Call{ID: callID(r.Number, i), Name: m.o.Tool, Input: input})
	}
	if m.o.Say != nil {
		reply.Text = m.o.Say(step)
	}
	if m.o.Think != nil {
		reply.Reasoning = m.o.Think(step)
	}
	if !r.Fault.Loses() {
		m.pending = slices.Clone(reply.Calls)
		m.wrapper = r.Wrapper()
	}
	return reply
}

// summary writes a summary. Pending calls count as done in it, because a
// compaction that follows them comes after their results. Its number makes
// each compacted context another one.
func (m *Marathon) summary() Reply {
	m.summaries++
	done, lines := m.done, m.lines
	if len(m.pending) > 0 {
		done++
		lines = append(slices.Clip(lines), fmt.Sprintf("Step %d of %d: %s %s", done, m.o.Steps, m.o.Tool, m.pending[0].Input))
	}
	next := fmt.Sprintf("Call %s for step %d.", m.o.Tool, done+1)
	if done >= m.o.Steps {
		next = "Give the final answer."
	}
	return Text(Summary{
		Goal:     fmt.Sprintf("Work through %d steps with %s, one after the other, then answer.", m.o.Steps, m.o.Tool),
		Progress: fmt.Sprintf("%d of %d steps are done (checkpoint %d).", done, m.o.Steps, m.summaries),
		Done:     lines,
		Next:     next,
	}.Text(m.o.SummaryTokens))
}
