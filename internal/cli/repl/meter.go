package repl

import (
	"slices"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
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
}

// modelUsage is what a model was used for.
type modelUsage struct {
	model string
	usage llm.Usage
	turns int
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

// add counts what a turn or a compaction cost.
func (c *meter) add(model string, u llm.Usage) {
	i := slices.IndexFunc(c.models, func(m modelUsage) bool { return m.model == model })
	if i < 0 {
		c.models = append(c.models, modelUsage{model: model})
		i = len(c.models) - 1
	}
	c.models[i].usage = c.models[i].usage.Plus(u)
	c.models[i].turns++
}

// restore counts what a stored session cost.
func (c *meter) restore(events []session.Event) {
	*c = meter{}
	model := ""
	for _, e := range events {
		if e.Model != "" {
			model = e.Model
		}
		if e.Usage != nil {
			c.add(model, *e.Usage)
		}
	}
}

// tokens returns the tokens of the session with those of the running turn, nil
// when nothing was reported.
func (m *Model) tokens() (*llm.Usage, *float64) {
	rows := slices.Clone(m.meter.models)
	if m.stream.active() {
		if usage, known := m.stream.turn.Handler().Usage(); known {
			rows = append(rows, modelUsage{model: m.choice.Name, usage: usage})
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	var total llm.Usage
	dollars, priced := 0.0, m.options.Cost != nil
	for _, r := range rows {
		total = total.Plus(r.usage)
		if !priced {
			continue
		}
		var d float64
		if d, priced = m.options.Cost(r.model, r.usage); priced {
			dollars += d
		}
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
	usage, cost := m.tokens()
	if usage != nil {
		s.Tokens = &render.TokenFigure{In: usage.InputTokens, Out: usage.OutputTokens}
	}
	s.Cost = cost
	return s
}

// contextUse estimates what fills the next request.
func (m *Model) contextUse() render.ContextUse {
	var use render.ContextUse
	use.System = llm.EstimateTokens(m.state.System())
	for _, spec := range m.registry.Specs() {
		use.Tools += llm.EstimateTokens(spec.Name) + llm.EstimateTokens(spec.Description) + llm.EstimateTokens(string(spec.Schema))
	}
	history := m.state.Messages()
	if m.stream.active() {
		history = append(history, m.stream.turn.Handler().memory...)
	}
	for _, message := range history {
		if message.Role == llm.RoleUser {
			use.User += llm.EstimateTokens(message.Content)
			continue
		}
		use.Assistant += llm.EstimateTokens(message.Content)
		for _, a := range message.ToolActivities {
			use.Assistant += llm.EstimateTokens(string(a.Input))
			use.ToolResults += llm.EstimateTokens(a.RawOutput) + llm.EstimateTokens(a.Summary)
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
