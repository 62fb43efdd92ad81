package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"keen/internal/cli/repl"
	"keen/internal/config"
	"keen/internal/llm"
	"keen/internal/llm/apierror"
	"keen/internal/session"
)

// runFlags are the flags of `keen run`.
type runFlags struct {
	model modelFlags

	format    string
	sessionID string
	resume    bool
	allow     []string
	yes       bool
	cwd       string
}

func (a *App) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] [prompt...]",
		Short: "Do one job without a screen and print the answer",
		Long: `Run does one job and prints the answer. The prompt is made of the arguments and,
when stdin is not a terminal, of what stands there.

In text format only the answer is on stdout, and progress is on stderr when that
is a terminal. What needs a permission that --allow, --yes or the configuration
does not give is refused; the model is told and goes on without it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 context limit, 4 a permission was
needed, 130 interrupted. The work up to there is stored and printed in each case.`,
		Example: `  keen run "why does TestParse fail?"
  keen run --yes "fix the failing tests" < ci.log
  keen run --continue --allow bash "and now run the linter"`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.runHeadless(c.Context(), f, args)
		},
	}
	flags := c.Flags()
	f.model.register(flags)
	flags.StringVar(&f.format, "format", "text", "output: text, json, or stream-json (a line for each event)")
	flags.StringVar(&f.sessionID, "session", "", "continue the session with this `id`, or the beginning of it")
	flags.BoolVar(&f.resume, "continue", false, "continue the latest session of the working directory")
	flags.StringSliceVar(&f.allow, "allow", nil, "`tools` that may run without asking, separated by commas")
	flags.BoolVar(&f.yes, "yes", false, "allow all tools inside the working directory")
	flags.StringVar(&f.cwd, "cwd", "", "work in this `directory`")
	return c
}

// runHeadless does one job.
func (a *App) runHeadless(ctx context.Context, f runFlags, args []string) error {
	format, err := parseFormat(f.format)
	if err != nil {
		return usageError(err)
	}
	if f.sessionID != "" && f.resume {
		return usageError(errors.New("--session and --continue exclude each other: the one names a session, the other takes the latest"))
	}
	prompt, err := a.readPrompt(args)
	if err != nil {
		return usageError(err)
	}
	dir, err := workingDir(f.cwd)
	if err != nil {
		return usageError(err)
	}
	s, err := a.settings(ctx, f.model)
	if err != nil {
		return usageError(err)
	}
	for _, note := range s.notes {
		_, _ = fmt.Fprintln(a.Stderr, "keen: "+note)
	}
	client, err := s.newClient(ctx)
	if err != nil {
		return usageError(err)
	}
	permissions, err := projectPermissions(dir, s.permissions)
	if err != nil {
		return usageError(err)
	}
	kit, err := newToolkit(toolkitOptions{dir: dir, allow: slices.Concat(permissions.Allow, f.allow), patterns: permissions.AllowPatterns, yes: f.yes})
	if err != nil {
		return usageError(err)
	}
	log, history, err := a.openSession(dir, f)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	return a.runTurn(ctx, turnOptions{
		client: client, model: s.name(), kit: kit, log: log,
		history: history, prompt: prompt, format: format, dir: dir,
	})
}

// turnOptions is a headless turn with everything it needs.
type turnOptions struct {
	client      llm.LLMClient
	model       string
	kit         *toolkit
	log         *session.Log
	history     []llm.Message
	prompt, dir string
	format      repl.HeadlessFormat
}

func (a *App) runTurn(ctx context.Context, o turnOptions) error {
	run := &repl.HeadlessRun{
		Client: o.client, Registry: o.kit.registry, Log: o.log, SessionID: o.log.ID(), Model: o.model, Format: o.format,
		State:  newState(o.dir, o.history, headless),
		Stdout: a.Stdout, Warnings: a.Stderr, Denied: o.kit.policy.Denied,
	}
	if a.StderrTerminal && o.format == repl.FormatText {
		run.Progress = a.Stderr
	}
	result, err := run.Run(ctx, o.prompt)
	if err != nil {
		return failed(err)
	}
	return a.exit(result)
}

// exit turns the result of a run into an exit code and, in text format, into
// words on stderr.
func (a *App) exit(r repl.HeadlessResult) error {
	resume := fmt.Sprintf("keen run --session %s", r.SessionID)
	switch err := r.Err(); {
	case r.Status == session.OutcomeInterrupted:
		return &exitError{code: ExitInterrupted, err: fmt.Errorf("interrupted; go on with: %s \"continue\"", resume)}
	case errors.Is(err, llm.ErrContextWindowExceeded):
		return &exitError{code: ExitContextLimit, err: err}
	case err != nil:
		return failed(withAdvice(err))
	case len(r.Denied) > 0:
		return &exitError{code: ExitPermission, err: permissionNeeded(r, resume)}
	}
	return nil
}

// withAdvice adds to an error of a provider what the user can do about it.
func withAdvice(err error) error {
	var e *apierror.Error
	if errors.As(err, &e) {
		if advice := e.Advice(); advice != "" {
			return fmt.Errorf("%w\n%s", err, advice)
		}
	}
	return err
}

func permissionNeeded(r repl.HeadlessResult, resume string) error {
	var b strings.Builder
	b.WriteString("these calls needed a permission and were refused:\n")
	seen := make(map[string]bool)
	var tools []string
	for _, d := range r.Denied {
		fmt.Fprintf(&b, "  %s: %s", d.Tool, d.Action)
		if d.Reason != "" {
			fmt.Fprintf(&b, " (%s)", d.Reason)
		}
		b.WriteByte('\n')
		if !seen[d.Tool] {
			seen[d.Tool] = true
			tools = append(tools, d.Tool)
		}
	}
	fmt.Fprintf(&b, "allow them with: %s --allow %s \"continue\"", resume, strings.Join(tools, ","))
	return errors.New(b.String())
}

func parseFormat(s string) (repl.HeadlessFormat, error) {
	switch f := repl.HeadlessFormat(s); f {
	case repl.FormatText, repl.FormatJSON, repl.FormatStreamJSON:
		return f, nil
	}
	return "", fmt.Errorf("there is no format %q: choose text, json or stream-json", s)
}

// maxPrompt bounds what is read from stdin, in bytes.
const maxPrompt = 16 << 20

// readPrompt makes the prompt of arguments and stdin.
func (a *App) readPrompt(args []string) (string, error) {
	parts := []string{strings.TrimSpace(strings.Join(args, " "))}
	if !a.StdinTerminal {
		piped, err := io.ReadAll(io.LimitReader(a.Stdin, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("read the prompt from stdin: %w", err)
		}
		if len(piped) > maxPrompt {
			return "", fmt.Errorf("stdin holds more than %d MB: save it to a file and name the file in the prompt", maxPrompt>>20)
		}
		if !utf8.Valid(piped) {
			return "", errors.New("stdin is not text in UTF-8: save it to a file and name the file in the prompt")
		}
		parts = append(parts, strings.TrimRight(string(piped), "\n"))
	}
	prompt := strings.TrimSpace(strings.Join(parts, "\n\n"))
	if prompt == "" {
		return "", errors.New("there is no prompt: give it as arguments or on stdin, as in: keen run \"explain main.go\"")
	}
	return prompt, nil
}

// workingDir returns the absolute directory to work in.
func workingDir(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("work in %s: %w", dir, err)
	}
	return resolved, nil
}

// projectPermissions adds what the user allowed in the project to what the
// configuration allows everywhere.
func projectPermissions(dir string, everywhere config.Permissions) (config.Permissions, error) {
	project, err := config.NewProject(config.DefaultProjectRoot(), dir)
	if err != nil {
		return everywhere, err
	}
	own, err := project.Permissions()
	if err != nil {
		return everywhere, err
	}
	return everywhere.With(own), nil
}

// openSession opens the session to go on with, or a new one.
func (a *App) openSession(dir string, f runFlags) (*session.Log, []llm.Message, error) {
	store, err := session.NewStore(a.sessionRoot(), dir)
	if err != nil {
		return nil, nil, failed(err)
	}
	var id string
	switch {
	case f.sessionID != "":
		if id, err = store.Find(f.sessionID); err != nil {
			return nil, nil, usageError(err)
		}
	case f.resume:
		info, err := store.Latest()
		if err != nil {
			return nil, nil, usageError(fmt.Errorf("there is no session to continue in %s: %w", dir, err))
		}
		id = info.ID
	default:
		log, err := store.Create(session.CreateOptions{KeenVersion: Version})
		if err != nil {
			return nil, nil, failed(err)
		}
		return log, nil, nil
	}
	log, err := store.Open(id)
	if err != nil {
		return nil, nil, failed(err)
	}
	events, recovery, err := store.Load(id)
	if err != nil {
		_ = log.Close()
		return nil, nil, failed(err)
	}
	if text := recovery.String(); text != "" {
		_, _ = fmt.Fprintln(a.Stderr, "keen: "+text)
	}
	return log, session.BuildConversation(events), nil
}
