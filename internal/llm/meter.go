package llm

import "keen/internal/llm/token"

// meter estimates the size of the next request: what the provider reported
// for the last one, plus a calibrated estimate of what came since. Without a
// report it is the calibrated local estimate alone. It costs the same however
// long the history is.
type meter struct {
	// reported is the last input plus the answer, by the provider's count,
	// 0 when there is none.
	reported int
	// base is the local estimate of the same.
	base int
}

// sent takes in the answer to a request. estimate is the local estimate of the
// request as it was sent, answerEstimate that of the recorded answer.
func (m *meter) sent(l *learned, estimate, answerEstimate int, answer step) {
	*m = meter{}
	u := answer.Usage
	if u == nil || !plausible(estimate, u.InputTokens) {
		return
	}
	l.observe(estimate, u.InputTokens)
	said := answer.AnswerTokens
	if said == 0 {
		c := l.scaler()
		said = c.Scale(answerEstimate)
	}
	m.reported = u.InputTokens + said
	m.base = estimate + answerEstimate
}

// plausible reports whether a reported input can be the whole input of a
// request: servers that leave out cached tokens report next to nothing.
func plausible(estimate, reported int) bool {
	return reported > 0 && (estimate < minObserved || reported >= estimate/3)
}

// estimate returns the size of a request whose local estimate is raw, unless
// something was taken out of it: then only the local estimate counts.
func (m *meter) estimate(raw int, c token.Calibration) int {
	if m.reported == 0 || raw < m.base {
		return c.Scale(raw)
	}
	return m.reported + c.Scale(raw-m.base)
}

// rawBudget returns the largest local estimate that stays within budget.
func (m *meter) rawBudget(budget int, c token.Calibration) int {
	switch {
	case m.reported == 0:
		return c.Unscale(budget)
	case budget >= m.reported:
		return m.base + c.Unscale(budget-m.reported)
	default:
		return min(m.base, c.Unscale(budget))
	}
}
