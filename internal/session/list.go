package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// headerLimit is the most that is read from the start of a file to describe
// its session, in bytes. Header and first event are far shorter.
const headerLimit = 64 << 10

// Info describes a session in a list.
type Info struct {
	// ID names the session.
	ID string
	// Path is its file.
	Path string
	// Cwd is the working directory it was started in.
	Cwd string
	// Title is the name the user gave it, or empty: one short line.
	Title string
	// Preview is the beginning of the latest user message: one short line,
	// safe on a terminal.
	Preview string
	// Created and Updated are the times of the first and the last event.
	Created, Updated time.Time
	// Events counts all events, Turns the user messages.
	Events, Turns int
	// Size is the size of the file in bytes.
	Size int64
}

// List returns the sessions of the working directory, the latest updated
// first. It reads the first and the last few kilobytes of each file, whatever
// its size. Files that are no session, or one of a newer Keen, are left out.
func (s *Store) List() ([]Info, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	infos := make([]Info, 0, len(ids))
	for _, id := range ids {
		if info, err := readInfo(id, s.path(id)); err == nil {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b Info) int {
		if c := b.Updated.Compare(a.Updated); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return infos, nil
}

// ids returns the ids of the files in the store, in lexical order.
func (s *Store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), fileExt); ok && validID(id) && e.Type().IsRegular() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func readInfo(id, path string) (Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	stat, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	in := bufio.NewReader(io.NewSectionReader(f, 0, headerLimit))
	first, err := in.ReadBytes('\n')
	if err != nil {
		return Info{}, ErrNotSession
	}
	if err := checkHeader(first); err != nil {
		return Info{}, err
	}
	info := Info{ID: id, Path: path, Size: stat.Size()}
	if started, ok := firstEvent(in); ok {
		info.Cwd, info.Created = started.Cwd, started.Time
	}
	d, err := readDigest(f, stat.Size())
	if err != nil {
		return Info{}, err
	}
	info.Title, info.Preview, info.Updated = d.Title, d.Preview, d.Updated
	info.Events, info.Turns = d.Events, d.Turns
	return info, nil
}

// firstEvent reads the event that tells how the session started.
func firstEvent(in *bufio.Reader) (Event, bool) {
	data, err := in.ReadBytes('\n')
	if err != nil {
		return Event{}, false
	}
	events, err := decodeLine(data)
	if err != nil || len(events) == 0 || events[0].Kind != KindSessionStarted {
		return Event{}, false
	}
	return events[0], true
}

// Latest returns the session that was updated last among those in which the
// user has said something. It does not skip one that is open elsewhere: going
// on with an older conversation would surprise, so [Store.Open] refuses and
// says why. It fails with [ErrNotFound] when there is none.
func (s *Store) Latest() (Info, error) {
	infos, err := s.List()
	if err != nil {
		return Info{}, err
	}
	for _, info := range infos {
		if info.Turns > 0 {
			return info, nil
		}
	}
	return Info{}, fmt.Errorf("continue the latest session: %w; start one first", ErrNotFound)
}

// Find returns the id that is, or is the only one to start with, prefix. It
// fails with an error that wraps [ErrNotFound] or [ErrAmbiguous].
func (s *Store) Find(prefix string) (string, error) {
	ids, err := s.ids()
	if err != nil {
		return "", fmt.Errorf("find session %s: %w", prefix, err)
	}
	var found []string
	for _, id := range ids {
		if id == prefix {
			return id, nil
		}
		if prefix != "" && strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("find session %q: %w", prefix, ErrNotFound)
	}
	const most = 5
	list := strings.Join(found[:min(len(found), most)], ", ")
	return "", fmt.Errorf("find session %q: %w, give more of the id: %s", prefix, ErrAmbiguous, list)
}
