package repl

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// Model is the interactive program: one Bubble Tea model. Its fields belong to
// the goroutine that calls Update; whatever takes time happens in commands,
// which get what they need as arguments and answer with a message.
//
// A turn is read by one command at a time: it takes the next events from the
// stream, and before it does so it stores what the last ones ask for. So a
// checkpoint is on the disk before anything that follows it is read.
type Model struct {
	options Options
	// ctx is the parent of everything that the program starts; stop ends it.
	ctx  context.Context
	stop context.CancelFunc
	now  func() time.Time

	theme    *render.Theme
	markdown *render.Markdown
	// reasoning says how much of the model's reasoning is shown.
	reasoning render.ReasoningView
	// width and height are the terminal's, in cells; sized says that it has
	// told them.
	width, height int
	sized         bool
	branch        string

	client   Client
	choice   ModelChoice
	state    *appstate.AppState
	registry *tools.Registry
	journal  *journal
	// broken says that the user knows that the session cannot be written.
	broken bool

	// What goes on: a turn, a compaction, or nothing. See reset.
	stream     activeStream
	compaction compactionState
	// opening counts the clients and sessions that are being opened.
	opening int
	loading struct{ text string }
	spinner *widgets.Spinner
	queue   []string

	approver *approver
	allowed  sessionAllowed

	// cards wait for the user, the one in front is shown; focus says whether
	// it has the keys, and wakes up at focusDue.
	cards    []card
	focus    focus
	focusDue time.Time

	editor    *widgets.Editor
	history   []string
	completer *widgets.Completer
	trigger   widgets.Trigger
	files     fileCache
	models    []ModelInfo
	job       *job

	notice  notification
	leaving leaving

	meter      meter
	lastAnswer string

	transcript *transcript
	live       liveView
	// pristine says that there is nothing but the start screen.
	pristine bool
	// lastSession says what could be resumed.
	lastSession string
	frame       frame
}

// New returns the program in its first state. Run it with [Run], or give it
// messages in a test.
func New(o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &Model{
		options: o, ctx: ctx, stop: stop, now: o.Now,
		choice: o.Config.Choice(), reasoning: o.Config.Reasoning(),
		journal: &journal{sessions: o.Sessions}, approver: newApprover(o.Rules),
		transcript: &transcript{}, pristine: true, width: 80, height: 24,
		allowed: newSessionAllowed(),
	}
	m.registry = o.NewRegistry(m.approver)
	m.setTheme(render.BackgroundDark)
	return m
}

// setTheme selects the look for a background.
func (m *Model) setTheme(b render.Background) {
	theme, err := render.SelectTheme(render.ThemeOptions{
		Name: m.options.Theme, NoColor: m.options.getenv("NO_COLOR"), Term: m.options.getenv("TERM"), Background: b,
	})
	if err != nil {
		theme = render.Dark()
		m.options.Notices = append(m.options.Notices, err.Error())
		m.options.Theme = ""
	}
	m.theme = theme
	m.markdown = render.NewMarkdown(theme, m.width)
	value := ""
	if m.editor != nil {
		value = m.editor.Value()
	}
	if m.editor == nil || value == "" && !m.editor.Searching() {
		m.editor = m.newEditor()
	}
	m.completer = widgets.NewCompleter(theme, completerRows)
	if m.spinner == nil {
		m.spinner = widgets.NewSpinner(theme.Glyphs.Frames)
	}
}

// Init starts what runs all the time and looks up what the first screen says.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(
		tea.RequestBackgroundColor,
		m.waitForAsk(),
		m.loadHistory(),
		m.lookUpBranch(),
		m.open(),
	)
}

// Update takes in a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.handle(msg)
	return m, tea.Batch(cmd, m.settleFocus(msg), m.draw(msg))
}

// handle dispatches a message.
func (m *Model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.handleKey(msg)
	case tea.PasteMsg:
		return m.handlePaste(msg)
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		m.handleBackground(msg)
	case tea.ColorProfileMsg:
		m.transcript.profile = msg.Profile
	case widgets.SpinnerTickMsg:
		m.answerAllowed()
		return m.spinner.Update(msg)
	case paintedMsg:
		m.frame.painted = true
	case printedMsg:
		m.transcript.printing = false
	case terminateMsg:
		return m.terminate()
	}
	if cmd, ok := m.handleStream(msg); ok {
		return cmd
	}
	return m.handleResult(msg)
}

// handleResult takes in what a command found out.
func (m *Model) handleResult(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case askMsg:
		return m.handleAsk(msg)
	case openedMsg:
		return m.handleOpened(msg)
	case clientMsg:
		return m.handleClient(msg)
	case modelsMsg:
		return m.handleModels(msg)
	case setupMsg:
		return m.handleSetup(msg)
	case sessionsMsg:
		return m.handleSessions(msg)
	case jobOutputMsg:
		return m.handleJobOutput(msg)
	case jobEndedMsg:
		return m.handleJobEnded(msg)
	case branchMsg:
		m.branch = string(msg)
	case lastSessionMsg:
		m.lastSession = string(msg)
		m.restyle()
	case historyMsg:
		m.history = append(msg, m.history...)
		m.editor.SetHistory(m.history)
	case filesMsg:
		m.handleFiles(msg)
	case editedMsg:
		return m.handleEdited(msg)
	case outcomeMsg:
		return m.handleOutcome(msg)
	case commandDoneMsg:
		return m.handleCommandDone(msg.result)
	case notificationExpiredMsg:
		m.notice.expire(msg)
	case leaveExpiredMsg:
		m.leaving.expire(msg)
	}
	return nil
}

// resize takes in the size of the terminal.
func (m *Model) resize(width, height int) {
	changed := width != m.width || !m.sized
	m.sized = true
	m.width, m.height = max(width, 1), max(height, 1)
	m.editor.SetWidth(m.width)
	if changed {
		m.markdown = render.NewMarkdown(m.theme, m.width)
		m.transcript.rewrap(m.width)
		m.restyle()
	}
}

func (m *Model) handleBackground(msg tea.BackgroundColorMsg) {
	background := render.BackgroundDark
	if !msg.IsDark() {
		background = render.BackgroundLight
	}
	m.setTheme(background)
	m.restyle()
}

// restyle draws anew what can still be drawn anew.
func (m *Model) restyle() {
	if m.stream.turn != nil {
		m.live.restyle(m.stream.turn.Handler(), m.look())
	}
	m.compaction.restyle(m.markdown)
	if m.pristine {
		m.transcript.clear()
		m.welcome()
	}
}

func (m *Model) look() look {
	return look{theme: m.theme, markdown: m.markdown, reasoning: m.reasoning, frame: m.spinner.Frame(), now: m.now()}
}

// say appends a block to the transcript.
func (m *Model) say(kind blockKind, lines []string) {
	m.pristine = false
	m.transcript.add(kind, lines)
}

// note says something in the transcript, warn something that the user should
// know.
func (m *Model) note(text string) { m.say(blockNote, render.Notice(m.theme, text, m.width)) }

func (m *Model) warn(text string) { m.say(blockNote, render.Warning(m.theme, text, m.width)) }

// fail says that something went wrong and what can be done about it.
func (m *Model) fail(err error) {
	f := render.Failure{What: err.Error()}
	if advice := adviceFor(err); advice != "" {
		f.Do = []string{advice}
	}
	m.say(blockNote, render.ErrorBlock(m.theme, f, m.width))
}

// welcome shows the start screen.
func (m *Model) welcome() {
	m.transcript.add(blockNote, render.WelcomeScreen(m.theme, render.Welcome{
		Version: m.options.Version, Dir: m.options.Dir, Home: m.options.Home, Model: m.choice.Name, Last: m.lastSession,
		Notices: m.options.Notices,
		Tips:    []string{"/help shows the commands and keys, @ names a file, ! runs a shell command"},
	}, m.width))
}

// busy reports whether a prompt has to wait.
func (m *Model) busy() bool {
	return m.stream.active() || m.compaction.mode != compactionNone || m.opening > 0
}

// reset makes the program idle again. Every ending of a turn and of a
// compaction leads here, whatever it was, and nowhere else is this state
// cleared.
func (m *Model) reset() {
	m.stream.release()
	m.compaction.release()
	m.stream, m.compaction = activeStream{generation: m.stream.generation}, compactionState{}
	m.loading.text = ""
	m.live.reset()
	m.spinner.Stop()
	m.dropAsks()
	m.leaving.armed = false // What Ctrl+C was for has happened.
}

// work shows that something goes on.
func (m *Model) work(text string) tea.Cmd {
	m.loading.text = text
	return m.spinner.Start(m.now())
}

// adviceFor returns what the user can do about an error, or nothing.
func adviceFor(err error) string {
	if e, ok := asAPIError(err); ok && e.Kind != apierror.KindContextOverflow {
		return e.Advice()
	}
	return ""
}
