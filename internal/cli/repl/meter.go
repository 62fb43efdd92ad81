package repl

import (
	"slices"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/llm/token"
	"keen/internal/session"
)

// meter knows the figures of the session: how full the context is, and what
// the models reported.
type meter struct {
	// used and budget are of the last request, in tokens.
	used, budget int
	known        bool
	// stale says that a compaction made the figure wrong, and nothing but a
	// report of the provider makes it right again.
	stale  bool
	models []modelUsage
	// running is the turn that runs, as it was priced last.
	running modelUsage
}

// modelUsage is what a model was used for.
type modelUsage struct {
	model string
	usage llm.Usage
	// dollars is what it cost, nil when that is unknown.
	dollars *float64
}

// priced returns the usage of a model with its price.
func (m *Model) priced(model string, u llm.Usage) modelUsage {
	row := modelUsage{model: model, usage: u}
	if m.options.Cost != nil {
		if dollars, known := m.options.Cost(model, u); known {
			row.dollars = &dollars
		}
	}
	return row
}

// step takes in the size of a request.
func (c *meter) step(s *llm.StepInfo) {
	c.budget = s.Budget
	if !c.stale {
		c.used, c.known = s.ContextTokens, true
	}
}

// reported takes in what the provider counted: what the next request begins
// with.
func (c *meter) reported(u *llm.Usage) {
	c.used, c.known, c.stale = u.InputTokens+u.OutputTokens, true, false
}

// compacted makes the context unknown.
func (c *meter) compacted() { c.used, c.known, c.stale = 0, false, true }

// count adds what a turn or a compaction of a model used. Prices are linear, so
// that the sum is priced as a whole.
func (m *Model) count(model string, u llm.Usage) {
	i := slices.IndexFunc(m.meter.models, func(row modelUsage) bool { return row.model == model })
	if i < 0 {
		m.meter.models = append(m.meter.models, modelUsage{})
		i = len(m.meter.models) - 1
	}
	m.meter.models[i] = m.priced(model, m.meter.models[i].usage.Plus(u))
}

// restoreMeter counts what a stored session used.
func (m *Model) restoreMeter(events []session.Event) {
	m.meter = meter{}
	model := ""
	for _, e := range events {
		if e.Model != "" {
			model = e.Model
		}
		if e.Usage != nil {
			m.count(model, *e.Usage)
		}
	}
}

// usage returns what the models of the session were used for, the running turn
// last. It is asked for each picture, so prices are looked up only when there
// is something new.
func (m *Model) usage() []modelUsage {
	rows := slices.Clone(m.meter.models)
	if !m.stream.active() {
		return rows
	}
	usage, known := m.stream.turn.Handler().Usage()
	if !known {
		return rows
	}
	if r := m.meter.running; r.usage != usage || r.model != m.choice.Name {
		m.meter.running = m.priced(m.choice.Name, usage)
	}
	return append(rows, m.meter.running)
}

// total returns the tokens and the cost of the session, nil where they are not
// known.
func (m *Model) total() (*llm.Usage, *float64) {
	rows := m.usage()
	if len(rows) == 0 {
		return nil, nil
	}
	var total llm.Usage
	dollars, priced := 0.0, true
	for _, r := range rows {
		total = total.Plus(r.usage)
		if r.dollars == nil {
			priced = false
			continue
		}
		dollars += *r.dollars
	}
	if !priced {
		return &total, nil
	}
	return &total, &dollars
}

// status collects what the lines at the bottom say.
func (m *Model) status() render.Status {
	s := render.Status{
		Model: m.choice.Name, Dir: m.options.Dir, Home: m.options.Home, Branch: m.branch, Thinking: m.choice.Effort,
	}
	if m.meter.known {
		s.Context = &render.ContextFigure{Used: m.meter.used, Budget: m.meter.budget}
	}
	usage, cost := m.total()
	if usage != nil {
		s.Tokens = &render.TokenFigure{In: usage.InputTokens, Out: usage.OutputTokens}
	}
	s.Cost = cost
	return s
}

// contextUse estimates what fills the next request.
func (m *Model) contextUse() render.ContextUse {
	var use render.ContextUse
	use.System = token.Estimate(m.state.System())
	for _, spec := range m.registry.Specs() {
		use.Tools += token.Estimate(spec.Name) + token.Estimate(spec.Description) + token.Estimate(string(spec.Schema))
	}
	history := m.state.Messages()
	if m.stream.active() {
		history = append(history, m.stream.turn.Handler().memory...)
	}
	for _, message := range history {
		if message.Role == llm.RoleUser {
			use.User += token.Estimate(message.Content)
			continue
		}
		use.Assistant += token.Estimate(message.Content)
		for _, a := range message.ToolActivities {
			use.Assistant += token.Estimate(string(a.Input))
			use.ToolResults += token.Estimate(a.RawOutput) + token.Estimate(a.Summary)
		}
	}
	if m.client != nil {
		sizes := m.client.Sizes()
		use.Budget, use.Window = sizes.Budget, sizes.Window
		use.Threshold = sizes.Budget - sizes.Budget/10
	}
	return m.calibrated(use)
}

// calibrated scales an estimate to what the provider counted.
func (m *Model) calibrated(use render.ContextUse) render.ContextUse {
	total := use.Total()
	if !m.meter.known || m.meter.used == 0 || total == 0 {
		return use
	}
	for _, part := range []*int{&use.System, &use.Tools, &use.User, &use.Assistant, &use.ToolResults} {
		*part = int(int64(*part) * int64(m.meter.used) / int64(total))
	}
	return use
}
