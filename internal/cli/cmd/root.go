// Package cmd is the command line of Keen: the commands, their flags, and the
// exit codes. It puts the other packages together and phrases errors for
// people; it has no behaviour of its own beyond that.
//
// Streams, arguments and environment are injected through [App], so that tests
// run commands in-process. The tables of command-line tests are the txtar
// files in cmd/keen/testdata.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	// ExitDone means that all went well.
	ExitDone = 0
	// ExitFailed means that something failed; stderr says what.
	ExitFailed = 1
	// ExitUsage means that the command line or the configuration is wrong.
	ExitUsage = 2
	// ExitContextLimit means that the conversation does not fit the model's
	// context window, after everything Keen can do about it.
	ExitContextLimit = 3
	// ExitPermission means that a tool needed a permission nobody gave.
	ExitPermission = 4
	// ExitInterrupted means that SIGINT or SIGTERM ended the run.
	ExitInterrupted = 130
)

// Version is the version of Keen; release builds set it with -ldflags.
var Version = "dev"

// App is the world a command runs in.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks up environment variables.
	Getenv func(string) string
	// Interactive says which streams are terminals.
	StdinTerminal, StdoutTerminal, StderrTerminal bool
}

// Main runs the command line args in the real world and returns its exit code.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	// Genkit would start a development server, and catches signals without
	// ending by them: Keen handles both first.
	_ = os.Unsetenv("GENKIT_ENV")
	quietLibraries()
	ctx, stop := interruptible(stderr)
	defer stop()
	app := &App{
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv,
		StdinTerminal: isTerminal(stdin), StdoutTerminal: isTerminal(stdout), StderrTerminal: isTerminal(stderr),
	}
	return app.Run(ctx, args)
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels. The
// second one ends the process at once.
func interruptible(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case <-signals:
			}
			if !first {
				os.Exit(ExitInterrupted)
			}
			_, _ = fmt.Fprintln(stderr, "keen: interrupted, storing what was done (again to quit at once)")
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// Run runs a command line and returns its exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		// Cobra's own errors are about the command line.
		exit = &exitError{code: ExitUsage, err: err}
	}
	if exit.err != nil {
		_, _ = fmt.Fprintf(a.Stderr, "keen: %s\n", strings.TrimSpace(exit.err.Error()))
	}
	return exit.code
}

// exitError ends a command with a code. A nil err means that everything was
// said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error { return &exitError{code: ExitUsage, err: err} }

func failed(err error) error { return &exitError{code: ExitFailed, err: err} }

func (a *App) rootCommand() *cobra.Command {
	var f interactiveFlags
	root := &cobra.Command{
		Use:   "keen [flags] [prompt...]",
		Short: "A terminal coding agent that you can leave alone with a long job",
		Long: `Keen is a terminal coding agent. A turn never dies of a full context and never
forgets its task: when the context window fills, Keen compacts the conversation
inside the running turn and goes on.`,
		Version:       Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.runInteractive(c.Context(), f, args)
		},
	}
	f.register(root)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.runCommand(), a.configCommand(), a.demoCommand(), a.loginCommand(), a.logoutCommand())
	return root
}
