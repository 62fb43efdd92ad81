package llm

// compactionGuard keeps the compactions of a turn from going round in circles.
// It counts in requests: for every script of tool outputs the compactions of a
// turn are at most half its requests plus one.
type compactionGuard struct {
	// requests counts the requests of the turn, attempts the compactions
	// that were started.
	requests, attempts int
	// rearm is the local estimate, in tokens, that the history must reach
	// before another proactive attempt; 0 means any.
	rearm int
	// exhausted says that no proactive attempt is made in this turn any
	// more.
	exhausted bool

	// culprit is the largest tool output of the history that is being
	// compacted, before the one of the compaction before it.
	culprit, before string
	// last is the request count at the last applied compaction, idle how
	// many in a row came right after another, with the same culprit.
	last, idle int
}

// rearmShare is the growth that makes another attempt worth it: a twentieth of
// the budget.
const rearmShare = 20

// usefulLimit is the size, in tokens, that a request must be below after a
// compaction for another one to be worth it: 85 % of the budget, one step of
// growth below the threshold.
func usefulLimit(budget int) int {
	return threshold(budget) - budget/rearmShare
}

// mayCompact reports whether a proactive attempt may be made. raw is the local
// estimate of the history.
func (g *compactionGuard) mayCompact(raw int) bool {
	return !g.exhausted && raw >= g.rearm && g.mayForce()
}

// mayForce reports whether the bound leaves room for one more compaction.
func (g *compactionGuard) mayForce() bool {
	return 2*g.attempts <= g.requests
}

// begin counts an attempt on a history whose largest output is culprit.
func (g *compactionGuard) begin(culprit string) {
	g.attempts++
	g.before, g.culprit = g.culprit, culprit
}

// unsuccessful makes the next attempt wait until the history has grown.
func (g *compactionGuard) unsuccessful(raw, budget int) {
	g.rearm = raw + budget/rearmShare
}

// idleRequests is how many requests after a compaction still count as right
// after it.
const idleRequests = 2

// applied notes a compaction that replaced the history.
func (g *compactionGuard) applied() {
	if g.last > 0 && g.requests-g.last <= idleRequests && g.culprit != "" && g.culprit == g.before {
		g.idle++
	} else {
		g.idle = 0
	}
	g.last, g.rearm = g.requests, 0
}

// maxIdle is how many compactions in a row may follow right after another.
const maxIdle = 2

// stalled reports whether compactions go on without progress.
func (g *compactionGuard) stalled() bool {
	return g.idle >= maxIdle
}
