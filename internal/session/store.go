package session

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"
)

// fileExt ends the name of every session file; the id comes before it.
const fileExt = ".jsonl"

// DefaultRoot returns the directory that holds the sessions of all working
// directories of the user: keen/sessions under $XDG_STATE_HOME or what the
// system has in its place. It need not exist.
func DefaultRoot() string {
	return filepath.Join(xdg.StateHome, "keen", "sessions")
}

// Store is the sessions of one working directory. It holds no state beside
// paths, so several may be used at once.
type Store struct {
	dir string
	cwd string
}

// NewStore returns the store of working directory cwd under root, usually
// [DefaultRoot]. It resolves symlinks in cwd, so that every way into a
// directory leads to the same sessions, and fails if that does not exist. It
// creates nothing.
func NewStore(root, cwd string) (*Store, error) {
	abs, err := filepath.Abs(cwd)
	if err != nil {
		return nil, fmt.Errorf("open session store: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open session store of %s: %w", cwd, err)
	}
	return &Store{dir: filepath.Join(root, directoryName(resolved)), cwd: resolved}, nil
}

// directoryName returns a name for the sessions of a working directory: a part
// for people, and a hash that tells directories of the same name apart.
func directoryName(cwd string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, filepath.Base(cwd))
	slug = strings.Trim(slug[:min(len(slug), 40)], "-")
	if slug == "" {
		slug = "root"
	}
	sum := sha256.Sum256([]byte(cwd))
	return slug + "-" + hex.EncodeToString(sum[:5])
}

// Dir returns the directory of the session files. It may not exist yet.
func (s *Store) Dir() string { return s.dir }

// Cwd returns the working directory, absolute and without symlinks.
func (s *Store) Cwd() string { return s.cwd }

// CreateOptions describes a new session.
type CreateOptions struct {
	// KeenVersion is the version of Keen that creates it.
	KeenVersion string
	// Title is its name, may be empty.
	Title string
}

// Create starts a session and returns its log, which the caller closes. The
// file appears at once and complete: a crash leaves no half of a header.
func (s *Store) Create(o CreateOptions) (*Log, error) {
	id := newID()
	started := Event{
		Kind: KindSessionStarted, SessionID: id, Cwd: s.cwd,
		KeenVersion: o.KeenVersion, Title: o.Title,
	}
	data, _, err := encodeBatch([]Event{started}, digest{}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	err = s.createFile(id, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	return s.Open(id)
}

// createFile writes a header and what fill adds to a temporary file, which
// then becomes the session.
func (s *Store) createFile(id string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	temp := filepath.Join(s.dir, "."+id+".tmp")
	if err := writeNew(temp, fill); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	if err := os.Rename(temp, s.path(id)); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	// The root too: it may have got its entry for the directory just now.
	return errors.Join(syncDir(s.dir), syncDir(filepath.Dir(s.dir)))
}

// writeNew writes a new session file to the disk.
func writeNew(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	first, err := encode(header{Format: formatName, Version: formatVersion})
	if err == nil {
		_, err = w.Write(first)
	}
	if err == nil {
		err = fill(w)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Open returns the log of an existing session, which the caller closes. It
// fails with an error that wraps [ErrLocked] while another log has the session
// open, [ErrNotFound], [ErrNotSession] or [ErrNewerFormat]. Nothing in the
// file changes before the first append.
func (s *Store) Open(id string) (*Log, error) {
	if !validID(id) {
		return nil, fmt.Errorf("open session %q: %w", id, ErrNotFound)
	}
	l, err := openLog(id, s.path(id))
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	return l, nil
}

// Load reads a session; see the function [Load]. A caller that wants to go on
// with the session opens it first, so that nobody appends in between. It also
// fails with [ErrNotFound].
func (s *Store) Load(id string) ([]Event, Recovery, error) {
	if !validID(id) {
		return nil, Recovery{}, fmt.Errorf("load session %q: %w", id, ErrNotFound)
	}
	events, rec, err := Load(s.path(id))
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("load session %s: %w", id, ErrNotFound)
	}
	return events, rec, err
}

// Delete removes a session for good. It fails with an error that wraps
// [ErrLocked] while a log has it open, or [ErrNotFound].
func (s *Store) Delete(id string) error {
	if !validID(id) {
		return fmt.Errorf("delete session %q: %w", id, ErrNotFound)
	}
	f, err := openLocked(s.path(id))
	if err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	if err := removeLocked(f, s.path(id)); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return nil
}

func (s *Store) path(id string) string {
	return filepath.Join(s.dir, id+fileExt)
}

// newID returns a random UUID. It is random from its first digit on, so that
// a few digits are enough to name a session.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails.
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// validID reports whether id can name a session, and so no other file.
func validID(id string) bool {
	return id != "" && strings.Trim(id, "0123456789abcdef-") == ""
}
