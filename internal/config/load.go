package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"
	"github.com/google/renameio/v2"
)

// Modes of what may hold keys.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// DefaultPath returns where the configuration file is: keen/config.json under
// $XDG_CONFIG_HOME or what the system has in its place. It need not exist.
func DefaultPath() string { return filepath.Join(xdg.ConfigHome, "keen", "config.json") }

// Loaded is a configuration file with what there is to say about it.
type Loaded struct {
	// File is its content; the zero value when there is no file.
	File File
	// Path is where it is or would be.
	Path string
	// Warnings are for the user.
	Warnings []string
}

// Load reads a configuration file. A file that does not exist holds no
// settings. The error about one that is wrong names the file, the line and
// what to write instead.
func Load(path string) (Loaded, error) {
	l := Loaded{Path: path}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return l, fmt.Errorf("read the configuration: %w", err)
	}
	if l.File, err = parse(text); err == nil {
		err = l.File.validate()
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%s can be read by other users (mode %04o), and it may hold keys: chmod 600 %s", path, info.Mode().Perm(), path))
	}
	return l, nil
}

// Update changes a configuration file: it reads what is there, lets edit change
// it and replaces the file in one step, so that a crash leaves the old one or
// the new one. The new file is for its owner alone, and its directory too when
// it is made here. A path that is a symlink keeps being one. Settings that edit
// does not touch stay as they are.
func Update(path string, edit func(*File)) error {
	l, err := Load(path)
	if err != nil {
		return err
	}
	edit(&l.File)
	if err := l.File.validate(); err != nil {
		return fmt.Errorf("change the configuration: %w", err)
	}
	if err := writeJSON(path, l.File); err != nil {
		return fmt.Errorf("change the configuration: %w", err)
	}
	return nil
}

// writeJSON replaces a file that only its owner may read.
func writeJSON(path string, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // Commands and patterns hold < and &.
	if err := encoder.Encode(v); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	// WriteFile of the same package would let an existing file hand down its
	// mode.
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(fileMode))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(text.Bytes()); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
