package render

import (
	"time"

	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

// ReplayItem renders one item of a replayed session in the way in which it
// looked when it happened. Nudges, which Keen sent by itself, show nothing.
func ReplayItem(m *Markdown, item session.ReplayItem) []string {
	t, width := m.theme, m.width
	switch item.Kind {
	case session.ReplayUser:
		return UserMessage(t, item.Text, width)
	case session.ReplayText, session.ReplaySummary:
		return m.Render(item.Text)
	case session.ReplayTool:
		return ToolBlock(t, StoredTool(item.Tool), width)
	case session.ReplayInterrupted:
		return Interrupted(t, width)
	case session.ReplayIncomplete:
		return Warning(t, item.Text, width)
	case session.ReplayError:
		return ErrorBlock(t, Failure{What: item.Text}, width)
	case session.ReplayStatus:
		return Notice(t, item.Text, width)
	case session.ReplayCommand:
		return BashBlock(t, Bash{Command: item.Text, Output: item.Output, ExitCode: item.ExitCode}, width)
	}
	return nil
}

// StoredTool returns a call of a stored session as it is shown. Nil yields an
// empty call that failed.
func StoredTool(a *llm.HistoricalToolActivity) Tool {
	if a == nil {
		return Tool{Status: tools.StatusError}
	}
	return Tool{
		Label: tools.Describe(a.Tool, a.Input).Label, Status: a.Status, Summary: a.Summary, ExitCode: a.ExitCode,
		Duration: time.Duration(a.DurationMS) * time.Millisecond,
	}
}
