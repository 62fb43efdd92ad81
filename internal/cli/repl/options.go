package repl

import (
	"context"
	"time"

	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/session"
	"keen/internal/tools"
)

// Client runs turns and compactions on one model.
type Client interface {
	appstate.Compacter
	// Sizes returns the sizes that requests are made to, in tokens.
	Sizes() llm.Sizes
}

// ModelChoice is a model with how hard it should think.
type ModelChoice struct {
	// Name is provider and model, such as "anthropic/claude"; empty when
	// nothing is set up yet.
	Name string
	// Effort is the thinking effort, empty for the model's own.
	Effort string
}

// ModelInfo is a model that the user can choose.
type ModelInfo struct {
	Name string
	// Detail is shown beside the name, such as the size of the window.
	Detail string
	// Efforts are the thinking efforts that the model knows, may be empty.
	Efforts []string
}

// Config is what of the configuration the screen reads and writes. The
// setters store on disk; they are called from commands, one at a time.
type Config interface {
	Choice() ModelChoice
	SetChoice(ModelChoice) error
	Reasoning() render.ReasoningView
	SetReasoning(render.ReasoningView) error
}

// Log is the one writer of a session. A [session.Log] is one.
type Log interface {
	Appender
	ID() string
	// Path is the file of the session, which [session.Load] reads.
	Path() string
	Close() error
}

// OpenedSession is a stored session that the program goes on with.
type OpenedSession struct {
	Log    Log
	Events []session.Event
	// Recovery says what of the file could not be read.
	Recovery session.Recovery
}

// Sessions are the sessions of the working directory; see [StoredSessions].
type Sessions interface {
	Create() (Log, error)
	Open(id string) (OpenedSession, error)
	// Fork starts a session that begins with what another one holds.
	Fork(id string) (OpenedSession, error)
	// List returns the sessions, the latest first.
	List() ([]session.Info, error)
}

// PromptHistory keeps the prompts of all sessions.
type PromptHistory interface {
	// Load returns the prompts of before, the oldest first.
	Load() ([]string, error)
	Add(prompt string) error
}

// Rules say what is to be done about a request, and why.
type Rules interface {
	Check(permission.Request) (permission.Verdict, string)
}

// SetupChoice is a way to come to a model when none is set up.
type SetupChoice struct {
	// Title says what it is, such as "ANTHROPIC_API_KEY is set".
	Title  string
	Detail string
	// Apply sets it up and returns the model to use. It may take long; what
	// it gives to show is shown to the user, such as an address to open.
	Apply func(ctx context.Context, show func(string)) (ModelChoice, error)
}

// Account signs the user in to or out of a provider. arg is what was typed
// after the command. It may take long and shows what the user has to do.
type Account func(ctx context.Context, arg string, show func(string)) error

// Options is everything that the program depends on. Functions may be called
// from any goroutine, unless they say otherwise.
type Options struct {
	// NewClient makes the client of a model. Required.
	NewClient func(ctx context.Context, choice ModelChoice) (Client, error)
	// NewRegistry makes the tools, which ask the approver before they act.
	// It is called once. Required.
	NewRegistry func(permission.Approver) *tools.Registry
	// NewState makes the state of a session from its stored conversation; it
	// may read files. Required.
	NewState func(history []llm.Message) *appstate.AppState
	// Companion goes along with all turns and compactions; nil for none.
	Companion llm.Companion
	// Prepare makes the message for what the user typed; nil sends it as it
	// is. Commands are added to the program's own; PromptCommands lists those
	// that Prepare makes a message of, nil for none. It is called from Update
	// and returns at once.
	Prepare        Prepare
	Commands       []Command
	PromptCommands func() []CommandInfo
	// Sessions stores the conversations. Required.
	Sessions Sessions
	// Config is the configuration. Required.
	Config Config

	// Rules decide about requests before the user is asked; nil asks about
	// each. A [permission.Policy] is one.
	Rules Rules
	// AllowProject stores a pattern that is allowed in this project from now
	// on, see [permission.Matches]; nil does not offer it.
	AllowProject func(pattern string) error
	// ProjectAllowed lists the patterns that are allowed in this project.
	ProjectAllowed func() []string

	// Models lists the models to choose from.
	Models func(ctx context.Context) ([]ModelInfo, error)
	// Cost returns what usage of a model costs in US dollars, and whether
	// that is known.
	Cost func(model string, u llm.Usage) (float64, bool)
	// Setup looks for ways to come to a model.
	Setup func(ctx context.Context) []SetupChoice
	// Login and Logout may be nil.
	Login, Logout Account

	// History may be nil.
	History PromptHistory
	// Files lists the files of the project for completion, relative to the
	// working directory; nil completes none. See [ProjectFiles].
	Files func(ctx context.Context) ([]string, error)
	// Branch returns the branch that is checked out, or nothing.
	Branch func(ctx context.Context) string

	// Dir is the working directory, Home the user's, Version Keen's version.
	Dir, Home, Version string
	// Theme is the user's setting, see [render.ThemeOptions].
	Theme string
	// Environ is the environment: the terminal's variables, $VISUAL and
	// $EDITOR, and what a shell command gets.
	Environ []string
	// Now is the clock; nil means the system's.
	Now func() time.Time

	// Resume is the id of a session to go on with, or empty.
	Resume string
	// Prompt is sent at the start, unless it is empty.
	Prompt string
	// Notices are shown on the start screen.
	Notices []string
}

// getenv looks up a variable; the last one of a name counts.
func (o *Options) getenv(name string) string {
	for i := len(o.Environ) - 1; i >= 0; i-- {
		if v := o.Environ[i]; len(v) > len(name) && v[len(name)] == '=' && v[:len(name)] == name {
			return v[len(name)+1:]
		}
	}
	return ""
}

// StoredSessions are the sessions of a [session.Store].
type StoredSessions struct {
	Store *session.Store
	// Version is the version of Keen that new sessions are marked with.
	Version string
}

// Create starts a session.
func (s StoredSessions) Create() (Log, error) {
	return logOrError(s.Store.Create(session.CreateOptions{KeenVersion: s.Version}))
}

// Open opens a session. It fails with an error that wraps [session.ErrLocked]
// while another program has it open.
func (s StoredSessions) Open(id string) (OpenedSession, error) {
	return s.read(s.Store.Open(id))
}

// Fork starts a session with what another one holds.
func (s StoredSessions) Fork(id string) (OpenedSession, error) {
	return s.read(s.Store.Fork(session.ForkOptions{Parent: id, KeenVersion: s.Version}))
}

// List returns the sessions of the working directory.
func (s StoredSessions) List() ([]session.Info, error) { return s.Store.List() }

// read reads what the session of a log holds, which nobody else can change any
// more.
func (s StoredSessions) read(log *session.Log, err error) (OpenedSession, error) {
	if err != nil {
		return OpenedSession{}, err
	}
	events, recovery, err := s.Store.Load(log.ID())
	if err != nil {
		_ = log.Close() // It was not written.
		return OpenedSession{}, err
	}
	return OpenedSession{Log: log, Events: events, Recovery: recovery}, nil
}

// logOrError keeps a nil log from becoming an interface that is not nil.
func logOrError(log *session.Log, err error) (Log, error) {
	if err != nil {
		return nil, err
	}
	return log, nil
}
