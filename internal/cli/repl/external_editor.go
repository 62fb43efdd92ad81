package repl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// editedMsg brings back the text from the external editor.
type editedMsg struct {
	text string
	err  error
}

// openEditor edits the prompt with the user's own editor, which gets the
// terminal for as long as it runs.
func (m *Model) openEditor() tea.Cmd {
	command := m.options.getenv("VISUAL")
	if command == "" {
		command = m.options.getenv("EDITOR")
	}
	if strings.TrimSpace(command) == "" {
		return m.notify("Set $EDITOR to edit prompts in your own editor")
	}
	run := &editorRun{command: command, environ: m.options.Environ, text: m.editor.Value()}
	return tea.Exec(run, func(err error) tea.Msg { return editedMsg{text: run.text, err: err} })
}

func (m *Model) handleEdited(msg editedMsg) tea.Cmd {
	if msg.err != nil {
		return m.notify("The editor failed: " + shortError(msg.err))
	}
	m.editor.SetValue(strings.TrimRight(msg.text, "\n"))
	return nil
}

// editorRun is a [tea.ExecCommand] that edits a text.
type editorRun struct {
	// command is a shell command that takes the file as its last argument.
	command        string
	environ        []string
	text           string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (r *editorRun) SetStdin(in io.Reader)   { r.stdin = in }
func (r *editorRun) SetStderr(out io.Writer) { r.stderr = out }

// SetStdout gives the editor the terminal itself.
func (r *editorRun) SetStdout(out io.Writer) {
	r.stdout = out
	if terminal, ok := out.(terminalFile); ok {
		r.stdout = terminal.File
	}
}

// Run edits the text in a temporary file.
func (r *editorRun) Run() (err error) {
	file, err := os.CreateTemp("", "keen-prompt-*.md")
	if err != nil {
		return fmt.Errorf("make a file for the editor: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.WriteString(r.text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the prompt for the editor: %w", err)
	}
	editor := exec.Command("sh", "-c", r.command+` "$@"`, r.command, file.Name()) //nolint:gosec // the user's own editor
	if runtime.GOOS == "windows" {
		words := append(strings.Fields(r.command), file.Name())
		editor = exec.Command(words[0], words[1:]...) //nolint:gosec // the user's own editor
	}
	editor.Env, editor.Stdin, editor.Stdout, editor.Stderr = r.environ, r.stdin, r.stdout, r.stderr
	if err := editor.Run(); err != nil {
		return fmt.Errorf("run %s: %w", r.command, err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		return fmt.Errorf("read what the editor wrote: %w", err)
	}
	r.text = string(text)
	return nil
}
