package repl

import (
	"context"
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/session"
)

// Prompt is the message that is sent for what the user typed.
type Prompt struct {
	// Text is the user's message.
	Text string
	// Attachments stand beside it.
	Attachments []llm.Attachment
	// Notes are lines for the user, such as what was cut.
	Notes []string
}

// Prepare makes the message for what the user typed, such as the body of a
// command that has arguments. With an error nothing is sent: the user reads it
// and has the typed text back. It may take its time, within ctx.
type Prepare func(ctx context.Context, typed string) (Prompt, error)

// prepare calls p, if there is one.
func (p Prepare) prepare(ctx context.Context, typed string) (Prompt, error) {
	if p == nil {
		return Prompt{Text: typed}, nil
	}
	prompt, err := p(ctx, typed)
	if err == nil && prompt.Text == "" {
		err = errors.New("nothing is left of the message to send")
	}
	return prompt, err
}

// event is the session event of a prompt.
func (p Prompt) event(typed string) session.Event {
	e := session.Event{Kind: session.KindUserMessage, Text: p.Text, Attachments: p.Attachments}
	if typed != p.Text {
		e.Shown = typed
	}
	return e
}

// CommandInfo names a command.
type CommandInfo struct {
	// Name begins with a slash and has no space, Args says what may follow.
	Name, Args, Help string
}

// Command is a command that a room adds to the program's own.
type Command struct {
	CommandInfo
	// WhileBusy says that it may run while a turn runs.
	WhileBusy bool
	// Run does it. arg is what was typed after the name. It is called from a
	// command of the program, so it may take its time, within ctx.
	Run func(ctx context.Context, arg string) CommandResult
}

// CommandResult is what a [Command] has to show. At most one of Err and the
// rest is set.
type CommandResult struct {
	// Title and Text are shown as a note; Text may have several lines.
	Title, Text string
	// Entries are shown as a table below it.
	Entries []render.HelpEntry
	// Notification is shown for a moment.
	Notification string
	// Send is sent as if the user had typed it.
	Send string
	Err  error
}

type commandDoneMsg struct{ result CommandResult }

// runExtra starts a command that a room added.
func (m *Model) runExtra(c Command, arg string) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg { return commandDoneMsg{c.Run(ctx, arg)} }
}

func (m *Model) handleCommandDone(r CommandResult) tea.Cmd {
	if r.Err != nil {
		m.fail(r.Err)
		return nil
	}
	if r.Text != "" {
		m.note(r.Text)
	}
	if len(r.Entries) > 0 {
		m.say(blockNote, render.HelpTable(m.theme, []render.HelpSection{{Title: r.Title, Entries: r.Entries}}, m.width))
	}
	var cmds []tea.Cmd
	if r.Notification != "" {
		cmds = append(cmds, m.notify(r.Notification))
	}
	if r.Send != "" {
		cmds = append(cmds, m.submit(r.Send))
	}
	return tea.Batch(cmds...)
}

// isPromptCommand reports whether a name is that of a command whose text
// [Prepare] makes a message of.
func (m *Model) isPromptCommand(name string) bool {
	return slices.ContainsFunc(m.promptCommands(), func(c CommandInfo) bool { return c.Name == name })
}

func (m *Model) promptCommands() []CommandInfo {
	if m.options.PromptCommands == nil {
		return nil
	}
	return m.options.PromptCommands()
}

// preparedMsg brings the message for what the user typed, or why there is none.
type preparedMsg struct {
	generation int
	typed      string
	prompt     Prompt
	err        error
}

// handlePrepared sends a prepared message.
func (m *Model) handlePrepared(msg preparedMsg) tea.Cmd {
	if msg.generation != m.stream.generation || !m.stream.active() {
		return nil
	}
	for _, note := range msg.prompt.Notes {
		m.note(note)
	}
	if msg.err == nil && !m.stream.interrupted {
		m.transcript.mark()
		return m.beginTurn(msg.typed, msg.prompt)
	}
	interrupted := m.stream.interrupted
	m.reset()
	if m.editor.Empty() {
		m.editor.SetValue(msg.typed)
	}
	if interrupted {
		m.say(blockNote, render.Interrupted(m.theme, m.width))
		return m.next()
	}
	m.fail(msg.err)
	return nil
}
