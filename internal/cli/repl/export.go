package repl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/session"
	"keen/internal/tools"
)

// export writes the session to a Markdown file. It never replaces one.
func (m *Model) export(name string) tea.Cmd {
	path := m.journal.path()
	if path == "" {
		return m.notify("There is nothing to export: nothing has been said yet")
	}
	if name == "" {
		name = "keen-" + shortID(m.journal.id()) + ".md"
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(m.options.Dir, name)
	}
	return func() tea.Msg {
		events, _, err := session.Load(path)
		if err == nil {
			err = writeNewFile(name, exportText(session.Replay(events)))
		}
		if err != nil {
			return outcomeMsg{err: fmt.Errorf("export the session: %w", err)}
		}
		return outcomeMsg{note: "The session is in " + name}
	}
}

func writeNewFile(name, text string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already; give another name, as in /export other.md", name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// exportText writes what was visible of a session as Markdown.
func exportText(items []session.ReplayItem) string {
	var b strings.Builder
	for _, item := range items {
		switch item.Kind {
		case session.ReplayUser:
			fmt.Fprintf(&b, "## You\n\n%s\n\n", item.Text)
		case session.ReplayTool:
			fmt.Fprintf(&b, "- %s (%s)\n\n", render.OneLine(tools.Describe(item.Tool.Tool, item.Tool.Input).Label), item.Tool.Status)
		case session.ReplayCommand:
			fmt.Fprintf(&b, "```\n$ %s\n%s\n```\n\n", item.Text, strings.TrimRight(item.Output, "\n"))
		case session.ReplayInterrupted:
			b.WriteString("*Interrupted.*\n\n")
		case session.ReplayIncomplete, session.ReplayError, session.ReplayStatus:
			fmt.Fprintf(&b, "*%s*\n\n", strings.TrimSpace(item.Text))
		case session.ReplayNudge:
		default:
			fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(item.Text))
		}
	}
	return render.Sanitize(b.String())
}
