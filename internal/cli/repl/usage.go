package repl

import (
	"strconv"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
)

// showUsage shows what the session cost so far, by model.
func (m *Model) showUsage(string) tea.Cmd {
	usage, _ := m.tokens()
	if usage == nil {
		m.note("No provider has reported any usage in this session yet.")
		return nil
	}
	rows := append([]modelUsage(nil), m.meter.models...)
	if m.stream.active() {
		if running, known := m.stream.turn.Handler().Usage(); known {
			rows = append(rows, modelUsage{model: m.choice.Name + " (running)", usage: running})
		}
	}
	table := render.TableData{Headers: []string{"Model", "Input", "Cached", "Output", "Thinking", "Cost"}, Right: []int{1, 2, 3, 4, 5}}
	for _, r := range rows {
		table.Rows = append(table.Rows, m.usageRow(r.model, r.usage))
	}
	m.say(blockNote, render.Table(m.theme, table, m.width))
	return nil
}

func (m *Model) usageRow(model string, u llm.Usage) []string {
	cost := render.Unknown
	if m.options.Cost != nil {
		if dollars, known := m.options.Cost(model, u); known {
			cost = render.Cost(dollars)
		}
	}
	return []string{
		model, render.Tokens(u.InputTokens), render.Tokens(u.CacheReadTokens), render.Tokens(u.OutputTokens),
		render.Tokens(u.ReasoningTokens), cost,
	}
}

// plural returns "1 line" or "3 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
