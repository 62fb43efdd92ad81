package repl

import (
	"strconv"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// showUsage shows what the session cost so far, by model.
func (m *Model) showUsage(string) tea.Cmd {
	rows := m.usage()
	if len(rows) == 0 {
		m.note("No provider has reported any usage in this session yet.")
		return nil
	}
	table := render.TableData{Headers: []string{"Model", "Input", "Cached", "Output", "Thinking", "Cost"}, Right: []int{1, 2, 3, 4, 5}}
	for i, r := range rows {
		name := r.model
		if i >= len(m.meter.models) {
			name += " (running)"
		}
		cost := render.Unknown
		if r.dollars != nil {
			cost = render.Cost(*r.dollars)
		}
		table.Rows = append(table.Rows, []string{
			name, render.Tokens(r.usage.InputTokens), render.Tokens(r.usage.CacheReadTokens), render.Tokens(r.usage.OutputTokens),
			render.Tokens(r.usage.ReasoningTokens), cost,
		})
	}
	m.say(blockNote, render.Table(m.theme, table, m.width))
	return nil
}

// plural returns "1 line" or "3 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
