package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/adrg/xdg"
)

// DefaultProjectRoot returns the directory that holds what the user allowed in
// all projects: keen/projects under $XDG_STATE_HOME or what the system has in
// its place.
func DefaultProjectRoot() string { return filepath.Join(xdg.StateHome, "keen", "projects") }

// Project is what the user allowed for one working directory. It is kept in
// the user's own state directory and never in the directory itself, where
// whoever writes the repository could grant himself permissions. It is safe
// for use by several goroutines; between processes the last writer wins, and
// each reads what is newest before it writes.
type Project struct {
	dir, path string
	mu        sync.Mutex
}

// NewProject returns the project in directory dir, with its file under root,
// usually [DefaultProjectRoot]. Symlinks in dir are resolved, so that every way
// into a directory leads to the same project. It creates nothing, and fails
// if dir does not exist.
func NewProject(root, dir string) (*Project, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("find the project: %w", err)
	}
	sum := sha256.Sum256([]byte(abs))
	return &Project{dir: abs, path: filepath.Join(root, hex.EncodeToString(sum[:10])+".json")}, nil
}

// projectFile is the content of a project's file.
type projectFile struct {
	// Directory is for people who look into the file, and guards against two
	// directories with one name.
	Directory   string      `json:"directory"`
	Permissions Permissions `json:"permissions"`
}

// Permissions returns what the user allowed in the project so far.
func (p *Project) Permissions() (Permissions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.read()
	return f.Permissions, err
}

// Allow adds permissions to those of the project. What is there already is not
// added again.
func (p *Project) Allow(more Permissions) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.read()
	if err != nil {
		return err
	}
	f.Directory = p.dir
	f.Permissions = f.Permissions.With(more)
	if err := writeJSON(p.path, f); err != nil {
		return fmt.Errorf("store the permission: %w", err)
	}
	return nil
}

func (p *Project) read() (projectFile, error) {
	var f projectFile
	text, err := os.ReadFile(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return f, fmt.Errorf("read the permissions of the project: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return projectFile{}, fmt.Errorf("read the permissions of the project: %w; delete %s to start again", err, p.path)
	}
	if f.Directory != p.dir {
		return projectFile{}, nil
	}
	return f, nil
}

// With returns the permissions of both, each once.
func (p Permissions) With(more Permissions) Permissions {
	return Permissions{
		Allow:         union(p.Allow, more.Allow),
		AllowPatterns: union(p.AllowPatterns, more.AllowPatterns),
	}
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
