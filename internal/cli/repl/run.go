package repl

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
)

// ErrDumbTerminal means that the terminal cannot show the program.
var ErrDumbTerminal = errors.New("this terminal (TERM=dumb) cannot show the interactive program; use keen run \"...\" instead")

// framesPerSecond is how often Bubble Tea looks for a new picture: often enough
// that a key is seen at once.
const framesPerSecond = 120

// Run runs the program until the user leaves it or ctx ends, which interrupts
// the running turn and stores what it did.
func Run(ctx context.Context, o Options, stdin io.Reader, stdout io.Writer) error {
	if o.getenv("TERM") == "dumb" {
		return ErrDumbTerminal
	}
	m := New(o)
	defer m.stop()
	output, flush := joined(stdout)
	defer flush()
	program := tea.NewProgram(m, tea.WithInput(stdin), tea.WithOutput(output), tea.WithEnvironment(o.Environ),
		tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			program.Send(terminateMsg{})
		case <-ended:
		}
	}()
	_, err := program.Run()
	close(ended)
	<-watched
	m.stop()
	if closeErr := m.journal.close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	if err != nil {
		return fmt.Errorf("run the interactive program: %w", err)
	}
	return nil
}
