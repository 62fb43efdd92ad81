package cmd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"
	"github.com/google/renameio/v2"
)

// promptHistory keeps the prompts of all sessions in a file, one JSON string a
// line.
type promptHistory struct{ path string }

func newPromptHistory(path string) promptHistory { return promptHistory{path: path} }

func promptHistoryPath() string { return filepath.Join(xdg.StateHome, "keen", "prompts.jsonl") }

// spillDir is where outputs go that are too large for a result.
func spillDir() string { return filepath.Join(xdg.CacheHome, "keen", "outputs") }

// Bounds of the history: when the file holds twice as many prompts as are
// kept, the oldest are dropped.
const (
	keptPrompts   = 1000
	longestPrompt = 64 << 10 // bytes
)

// Load returns the latest prompts, the oldest first. Damaged lines are left
// out.
func (h promptHistory) Load() ([]string, error) {
	file, err := os.Open(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the prompt history: %w", err)
	}
	defer func() { _ = file.Close() }()
	var prompts []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 8*longestPrompt)
	for lines.Scan() {
		var p string
		if json.Unmarshal(lines.Bytes(), &p) == nil && p != "" {
			prompts = append(prompts, p)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the prompt history: %w", err)
	}
	return prompts, nil
}

// Add keeps a prompt.
func (h promptHistory) Add(prompt string) error {
	if len(prompt) > longestPrompt {
		return nil // Nobody looks for a pasted file in the history.
	}
	line, err := json.Marshal(prompt)
	if err != nil {
		return fmt.Errorf("keep the prompt: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("keep the prompt: %w", err)
	}
	if all, err := h.Load(); err == nil && len(all) >= 2*keptPrompts {
		return h.rewrite(append(all[len(all)-keptPrompts:], prompt))
	}
	file, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the prompt: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

func (h promptHistory) rewrite(prompts []string) error {
	var text []byte
	for _, p := range prompts {
		line, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("keep the prompt: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	return renameio.WriteFile(h.path, text, 0o600)
}
