package repl

import (
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/widgets"
)

// completerRows is how many completions are shown.
const completerRows = 8

// fileCacheTime is how long the list of files is good for.
const fileCacheTime = 10 * time.Second

// fileCache is the list of files to complete from.
type fileCache struct {
	items   []widgets.Item
	read    time.Time
	reading bool
	// shown is when the list came up by itself, because the files were found;
	// zero when it is there because of a key.
	shown time.Time
}

type filesMsg struct {
	files []string
	err   error
}

// newEditor makes an empty editor in the present look.
func (m *Model) newEditor() *widgets.Editor {
	e := widgets.NewEditor(m.theme)
	e.SetWidth(m.width)
	e.SetPlaceholder("Ask for something, or /help")
	e.SetHistory(m.history)
	return e
}

// complete opens, narrows or closes the list of completions after the text
// changed.
func (m *Model) complete() tea.Cmd {
	trigger, ok := m.editor.Trigger()
	if !ok {
		m.completer.Close()
		return nil
	}
	opened := !m.completer.Visible() || trigger.Sign != m.trigger.Sign
	m.files.shown = time.Time{}
	m.trigger = trigger
	if trigger.Sign == '/' {
		m.completer.Open(m.commandItems(), trigger.Query)
		return nil
	}
	if opened {
		m.completer.Open(m.files.items, trigger.Query)
	} else {
		m.completer.SetQuery(trigger.Query)
	}
	return m.listFiles()
}

// listFiles reads the list of files when it is old.
func (m *Model) listFiles() tea.Cmd {
	if m.options.Files == nil || m.files.reading || m.now().Sub(m.files.read) < fileCacheTime {
		return nil
	}
	m.files.reading = true
	ctx, list := m.ctx, m.options.Files
	return func() tea.Msg {
		files, err := list(ctx)
		return filesMsg{files: files, err: err}
	}
}

func (m *Model) handleFiles(msg filesMsg) {
	m.files.reading, m.files.read = false, m.now()
	if msg.err != nil {
		return // There is nothing to complete; the user types the name.
	}
	m.files.items = make([]widgets.Item, len(msg.files))
	for i, name := range msg.files {
		m.files.items[i] = widgets.Item{Text: name, Value: name}
	}
	if trigger, ok := m.editor.Trigger(); ok && trigger.Sign == '@' && !m.focus.onCard {
		if !m.completer.Visible() {
			m.files.shown = m.now()
		}
		m.trigger = trigger
		m.completer.Open(m.files.items, trigger.Query)
	}
}

// handleCompleterKey gives a key to the list of completions and reports whether
// it was for that. Enter is not when the name was typed in full, or when the
// list came up by itself a moment ago.
func (m *Model) handleCompleterKey(key tea.KeyPressMsg) (tea.Cmd, bool) {
	if selected, ok := m.completer.Selected(); ok && key.Keystroke() == "enter" {
		named := strings.TrimPrefix(selected.Value, "/") == m.trigger.Query
		if named || m.now().Sub(m.files.shown) < answerDelay {
			m.completer.Close()
			return nil, false
		}
	}
	event := m.completer.Update(key)
	switch event.Kind {
	case widgets.CompleterAccepted:
		sign := ""
		if m.trigger.Sign == '@' {
			sign = "@"
		}
		m.editor.Complete(m.trigger, sign+event.Item.Value)
		m.completer.Close()
		if m.trigger.Sign == '/' && key.Keystroke() == "enter" && !m.takesArgument(event.Item.Value) {
			return m.handleEditor(key), true
		}
		return nil, true
	case widgets.CompleterIgnored:
		return nil, false
	}
	return nil, true
}

// maxFiles bounds the files that are offered for completion.
const maxFiles = 50_000

// ProjectFiles lists the files of the project in dir, relative to it: those
// that git knows or would add, and where there is no repository those that a
// walk finds.
func ProjectFiles(ctx context.Context, dir string) ([]string, error) {
	git := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	out, err := git.Output()
	if err != nil {
		return walkFiles(ctx, dir)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(files) == 1 && files[0] == "" {
		return nil, nil
	}
	return files[:min(len(files), maxFiles)], nil
}

func walkFiles(ctx context.Context, dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is not offered
		case entry.IsDir() && path != dir && skippedDir(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		case len(files) == maxFiles:
			return filepath.SkipAll
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files = append(files, filepath.ToSlash(name))
		return nil
	})
	return files, err
}

// skippedDir reports whether a directory holds what nobody wants to name.
func skippedDir(name string) bool {
	return strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor"
}
