package llm

import (
	"sync"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
)

// Sizes are the sizes that requests are made to, in tokens.
type Sizes struct {
	// Window is the context window as far as it is known.
	Window int
	// Output is the output that requests ask for, and the output reserve.
	Output int
	// Budget is the effective input budget.
	Budget int
}

// Sizes returns the current sizes. They shrink when a server rejects a request
// and says what it accepts.
func (c *Client) Sizes() Sizes { return c.sizes() }

// CompactionBudget returns the most that one compaction request may have, in
// tokens of [token.Estimate]. It leaves a little room, because the calibration
// was learned on other text.
func (c *Client) CompactionBudget() int {
	scale := c.learned.scaler()
	budget := scale.Unscale(c.sizes().Budget)
	return budget - budget/20
}

func (c *Client) sizes() Sizes { return c.learned.sizes() }

// learned is what a client knows about its model's sizes: the configuration,
// corrected by what the server said. It is shared by the turns of a client, so
// that a limit is learned once a session.
type learned struct {
	modelMax int

	mu sync.Mutex
	// window and output begin as configured and only ever shrink.
	window, output int
	// ceiling bounds the budget after a rejection without numbers; 0 means
	// that there was none.
	ceiling     int
	calibration token.Calibration
}

func (l *learned) sizes() Sizes {
	l.mu.Lock()
	defer l.mu.Unlock()
	output := outputReserve(l.output, l.modelMax, l.window)
	budget := effectiveBudget(l.window, output)
	if l.ceiling > 0 {
		budget = min(budget, l.ceiling)
	}
	return Sizes{Window: l.window, Output: output, Budget: budget}
}

func (l *learned) lowerOutput(output int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.output = min(l.output, output)
}

// scaler returns the calibration as it is now.
func (l *learned) scaler() token.Calibration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calibration
}

// minObserved is the smallest request, in tokens, whose reported size says
// something about the text and not only about the provider's overhead.
const minObserved = 512

// observe takes in that a request of estimated tokens was counted as reported.
func (l *learned) observe(estimated, reported int) {
	if estimated < minObserved || reported <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calibration.Observe(estimated, reported)
}

// minCeiling is the smallest rejected estimate, in tokens, that is believed: a
// tiny request that is called too large is some other fault.
const minCeiling = 8192

// rejected takes in an overflow error. raw is the local estimate of the
// conversation, estimate the calibrated one, both in tokens.
func (l *learned) rejected(e *apierror.Error, raw, estimate int) {
	counted := e.Input
	if counted == 0 {
		counted = e.Used
	}
	if counted > 0 && counted >= raw {
		// The server counts more than Keen did.
		l.observe(raw, counted)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case e.Limit >= minLimit && e.Limit < l.window:
		l.window = e.Limit
	case e.Limit == 0 && counted == 0 && estimate >= minCeiling:
		// Nothing is stated; what was rejected is too much by at least a
		// little.
		ceiling := estimate - estimate/10
		if l.ceiling == 0 || ceiling < l.ceiling {
			l.ceiling = ceiling
		}
	}
}

// minLimit is the smallest limit, in tokens, that is taken for a window.
const minLimit = 256
