package session

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Errors that callers branch on. They come wrapped with the session they are
// about.
var (
	// ErrLocked means that another process, or another [Log] of this one,
	// writes the session.
	ErrLocked = errors.New("in use by another keen: close it there, fork it, or choose another session")
	// ErrNotFound means that the working directory has no such session.
	ErrNotFound = errors.New("no such session in this working directory")
	// ErrAmbiguous means that several ids start with what was given.
	ErrAmbiguous = errors.New("several sessions start like this")
	// ErrNotSession means that the file does not start like a session.
	ErrNotSession = errors.New("not a keen session: its first line is no session header")
	// ErrNewerFormat means that a newer Keen wrote the session.
	ErrNewerFormat = errors.New("written by a newer keen")
)

// Recovery says what of a file could not be read. The zero value means that
// all of it could.
type Recovery struct {
	// TornBytes is the length of the unfinished line at the end, which the
	// next append cuts off.
	TornBytes int64
	// DamagedLines are the numbers of complete lines, counted from 1, that
	// hold no readable batch. They were skipped and stay in the file.
	DamagedLines []int
}

// String describes the damage to the user. It is empty when there is none.
func (r Recovery) String() string {
	var parts []string
	if r.TornBytes > 0 {
		parts = append(parts, fmt.Sprintf("the last write was cut off (%d bytes); everything before it is here", r.TornBytes))
	}
	if n := len(r.DamagedLines); n > 0 {
		parts = append(parts, fmt.Sprintf("damaged entries were skipped: %d, the first at line %d", n, r.DamagedLines[0]))
	}
	return strings.Join(parts, "; ")
}

// Load reads the session file at path. It takes no lock: it may run while
// another process appends, and then sees whole batches only. Errors wrap
// [ErrNotSession] or [ErrNewerFormat], or come from the file system.
func Load(path string) ([]Event, Recovery, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Recovery{}, fmt.Errorf("load session: %w", err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	var all []Event
	rec, err := readLines(f, func(_ []byte, events []Event) error {
		all = append(all, events...)
		return nil
	})
	if err != nil {
		return nil, rec, fmt.Errorf("load session %s: %w", path, err)
	}
	return all, rec, nil
}
