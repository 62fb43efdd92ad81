package repl

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
	"keen/internal/llm"
	"keen/internal/session"
)

// openedMsg brings the session to go on with.
type openedMsg struct {
	journal *journal
	state   *appstate.AppState
	events  []session.Event
	// lines show what was said and done, drawn for width.
	lines []string
	width int
	// notes are for the user, such as what a crash left behind.
	notes  []string
	err    error
	banner string
}

// open opens what the program starts with.
func (m *Model) open() tea.Cmd {
	var client tea.Cmd
	if m.choice.Name == "" {
		client = m.startSetup(byItself)
	} else {
		client = m.openClient(m.choice, keepChoice)
	}
	var session tea.Cmd
	if m.options.Resume == "" {
		session = tea.Batch(m.freshSession(""), m.lookUpLast())
	} else {
		session = m.openStored("", func(s Sessions) (OpenedSession, error) { return s.Open(m.options.Resume) })
	}
	if m.options.Prompt != "" {
		m.enqueue(m.options.Prompt)
	}
	return tea.Batch(session, client)
}

// lastSessionMsg says what could be resumed.
type lastSessionMsg string

// lookUpLast finds the latest session of the directory.
func (m *Model) lookUpLast() tea.Cmd {
	sessions, now := m.options.Sessions, m.now
	return func() tea.Msg {
		infos, err := sessions.List()
		if err != nil {
			return nil // Whoever asks for the list gets the error.
		}
		for _, info := range infos {
			if info.Turns > 0 {
				return lastSessionMsg(fmt.Sprintf("%s, %s: /resume", titleOf(info), render.Age(now().Sub(info.Updated))))
			}
		}
		return nil
	}
}

// titleOf returns what a session is called in a list.
func titleOf(info session.Info) string {
	if info.Title != "" {
		return info.Title
	}
	return info.Preview
}

// freshSession begins a new session.
func (m *Model) freshSession(banner string) tea.Cmd {
	m.opening++
	newState, old := m.options.NewState, m.journal
	fresh := &journal{sessions: m.options.Sessions}
	return func() tea.Msg {
		msg := openedMsg{journal: fresh, state: newState(nil), banner: banner}
		if err := old.close(); err != nil {
			msg.notes = append(msg.notes, err.Error())
		}
		return msg
	}
}

// openStored goes on with a stored session.
func (m *Model) openStored(banner string, open func(Sessions) (OpenedSession, error)) tea.Cmd {
	m.opening++
	sessions, newState, old := m.options.Sessions, m.options.NewState, m.journal
	markdown, width := render.NewMarkdown(m.theme, m.width), m.width
	return func() tea.Msg {
		opened, err := open(sessions)
		if err != nil {
			return openedMsg{err: err}
		}
		msg := openedMsg{
			journal: &journal{sessions: sessions, log: opened.Log}, state: newState(session.BuildConversation(opened.Events)),
			events: opened.Events, lines: replayLines(markdown, opened.Events), width: width, banner: banner,
		}
		if text := opened.Recovery.String(); text != "" {
			msg.notes = append(msg.notes, "The session file was damaged: "+text+".")
		}
		if cutOff(opened.Events) {
			msg.notes = append(msg.notes, "The last turn was cut off when Keen ended. What it did up to there is kept; say \"continue\" to go on.")
		}
		if err := old.close(); err != nil {
			msg.notes = append(msg.notes, err.Error())
		}
		return msg
	}
}

// cutOff reports whether a session ends in the middle of a turn.
func cutOff(events []session.Event) bool {
	for i := len(events) - 1; i >= 0; i-- {
		switch e := events[i]; e.Kind {
		case session.KindAssistantTurn:
			return e.Outcome == session.OutcomeStep || e.Outcome == session.OutcomeCheckpoint
		case session.KindUserMessage:
			return true
		case session.KindCompactionApplied:
			if e.Status != "" {
				return false
			}
		case session.KindCleared:
			return false
		}
	}
	return false
}

// replayItems bounds what is drawn of a long session.
const replayItems = 400

// replayLines draws what was visible in a session.
func replayLines(markdown *render.Markdown, events []session.Event) []string {
	items := session.Replay(events)
	t := &transcript{}
	if more := len(items) - replayItems; more > 0 {
		items = items[more:]
		t.add(blockNote, render.Notice(markdown.Theme(), fmt.Sprintf("%d earlier entries are not shown; /export writes all of them.", more), markdown.Width()))
	}
	for _, item := range items {
		t.add(replayKind(item.Kind), render.ReplayItem(markdown, item))
	}
	return t.lines
}

func replayKind(k session.ReplayKind) blockKind {
	switch k {
	case session.ReplayUser:
		return blockUser
	case session.ReplayText, session.ReplaySummary:
		return blockText
	case session.ReplayTool:
		return blockTool
	}
	return blockNote
}

// handleOpened goes on with a session.
func (m *Model) handleOpened(msg openedMsg) tea.Cmd {
	m.opening--
	if msg.err != nil {
		m.fail(msg.err)
		if m.state == nil {
			return m.freshSession("") // The program cannot be without one.
		}
		return m.next()
	}
	m.journal, m.state, m.broken = msg.journal, msg.state, false
	m.restoreMeter(msg.events)
	if m.client != nil {
		m.meter.budget = m.client.Sizes().Budget
	}
	m.lastAnswer = lastAnswer(msg.state.Messages())
	m.allowed = newSessionAllowed()
	if msg.banner != "" {
		m.say(blockNote, []string{render.Rule(m.theme, msg.banner, m.width)})
	}
	if len(msg.lines) > 0 {
		m.say(blockNote, msg.lines)
		if msg.width != m.width {
			m.transcript.rewrap(m.width)
		}
	}
	for _, note := range msg.notes {
		m.warn(note)
	}
	return m.next()
}

func lastAnswer(history []llm.Message) string {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == llm.RoleUser && !history[i].Nudge {
			return AnswerText(history[i+1:])
		}
	}
	return ""
}

// sessionsMsg brings the sessions of the working directory; arg is what the
// user typed.
type sessionsMsg struct {
	infos []session.Info
	arg   string
	err   error
	// latest says that the user wants the latest one.
	latest bool
	why    cause
}

// listSessions reads the list of sessions.
func (m *Model) listSessions(msg sessionsMsg) tea.Cmd {
	sessions := m.options.Sessions
	return func() tea.Msg {
		msg.infos, msg.err = sessions.List()
		return msg
	}
}

func (m *Model) handleSessions(msg sessionsMsg) tea.Cmd {
	if msg.err != nil {
		m.fail(msg.err)
		return nil
	}
	own := m.journal.id()
	var infos []session.Info
	for _, info := range msg.infos {
		if info.ID != own && info.Turns > 0 && strings.HasPrefix(info.ID, msg.arg) {
			infos = append(infos, info)
		}
	}
	switch {
	case len(infos) == 0 && msg.arg != "":
		return m.notify("There is no other session whose id begins with " + msg.arg)
	case len(infos) == 0:
		return m.notify("There is no other session in this directory")
	case msg.latest || msg.arg != "" && len(infos) == 1:
		return m.resume(infos[0].ID)
	}
	now := m.now()
	items := make([]widgets.Item, len(infos))
	for i, info := range infos {
		items[i] = widgets.Item{
			Text: titleOf(info), Value: info.ID,
			Detail: fmt.Sprintf("%s %s %d prompts", render.Age(now.Sub(info.Updated)), m.theme.Glyphs.Separator, info.Turns),
		}
	}
	m.pick(&pickerCard{widget: m.newPicker("Sessions of this directory", items), chosen: m.resume}, msg.why)
	return nil
}

// resume goes on with another session.
func (m *Model) resume(id string) tea.Cmd {
	if m.busy() {
		return m.notify("A turn is running; Esc interrupts it")
	}
	return m.openStored("session "+shortID(id), func(s Sessions) (OpenedSession, error) { return s.Open(id) })
}

// fork goes on in a copy of the session.
func (m *Model) fork() tea.Cmd {
	id := m.journal.id()
	if id == "" {
		return m.notify("There is nothing to fork yet")
	}
	return m.openFork(id)
}

// openFork keeps the screen: the fork holds what is on it already.
func (m *Model) openFork(id string) tea.Cmd {
	open := m.openStored("fork of session "+shortID(id), func(s Sessions) (OpenedSession, error) { return s.Fork(id) })
	return func() tea.Msg {
		msg, ok := open().(openedMsg)
		if ok {
			msg.lines = nil
		}
		return msg
	}
}

// rename gives the session a title.
func (m *Model) rename(title string) tea.Cmd {
	if m.journal.id() == "" {
		return m.notify("There is nothing to name yet")
	}
	journal := m.journal
	return func() tea.Msg {
		if err := journal.append(session.Event{Kind: session.KindSessionRenamed, Title: title}); err != nil {
			return outcomeMsg{err: err}
		}
		return outcomeMsg{notification: "This session is now called " + title}
	}
}

// shortID is enough of an id for people.
func shortID(id string) string { return id[:min(len(id), 8)] }
