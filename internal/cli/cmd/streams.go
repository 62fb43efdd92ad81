package cmd

import (
	"io"
	"log"
	"log/slog"
	"os"
)

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// quietLibraries keeps the SDKs from writing to the terminal: Genkit logs
// through slog, and Google's and Anthropic's clients through log.
func quietLibraries() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
}
