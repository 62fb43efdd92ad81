package cmd

import (
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/charmbracelet/x/term"
)

// isTerminal reports whether a file is a terminal. Not every device is one:
// /dev/null is none.
func isTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// quietLibraries keeps the SDKs from writing to the terminal: Genkit logs
// through slog, and Google's and Anthropic's clients through log.
func quietLibraries() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
}
