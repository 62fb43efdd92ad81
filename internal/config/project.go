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

// Project is what the user allowed and approved for one working directory. It is kept in
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
	// Approvals are the digests of what the user approved, by kind and name.
	Approvals map[string]string `json:"approvals,omitempty"`
}

// Approval is a thing that a repository brings and that may run only after the
// user said yes to exactly this, such as a server of .mcp.json or a hook.
type Approval struct {
	// Kind says what it is, such as "mcp" or "hook", and Name which one.
	Kind, Name string
	// Content is everything that decides what would run. When any of it
	// changes, the user is asked again.
	Content []byte
}

func (a Approval) key() string { return a.Kind + ":" + a.Name }

func (a Approval) digest() string {
	sum := sha256.Sum256(a.Content)
	return hex.EncodeToString(sum[:])
}

// Approved reports whether the user said yes to exactly this in the project.
func (p *Project) Approved(a Approval) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.read()
	return err == nil && f.Approvals[a.key()] == a.digest(), err
}

// Approve remembers that the user said yes.
func (p *Project) Approve(a Approval) error {
	return p.change("store the approval", func(f *projectFile) {
		if f.Approvals == nil {
			f.Approvals = make(map[string]string)
		}
		f.Approvals[a.key()] = a.digest()
	})
}

// Revoke forgets an approval, whatever its content was.
func (p *Project) Revoke(kind, name string) error {
	return p.change("take the approval back", func(f *projectFile) {
		delete(f.Approvals, Approval{Kind: kind, Name: name}.key())
	})
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
	return p.change("store the permission", func(f *projectFile) { f.Permissions = f.Permissions.With(more) })
}

// change reads the file, changes it and writes it; doing says what for.
func (p *Project) change(doing string, change func(*projectFile)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.read()
	if err != nil {
		return err
	}
	f.Directory = p.dir
	change(&f)
	if err := writeJSON(p.path, f); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
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
		return f, fmt.Errorf("read what was allowed in the project: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return projectFile{}, fmt.Errorf("read what was allowed in the project: %w; delete %s to start again", err, p.path)
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
