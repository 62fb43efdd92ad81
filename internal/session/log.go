package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Log appends to one session. It holds the session's lock until it is closed,
// so it is the only writer. Its methods may be called from any goroutine.
type Log struct {
	id   string
	path string

	mu sync.Mutex
	// file is nil once the log is closed.
	file logFile
	// size is where the next line starts: just after the last stored one.
	size int64
	// torn says that the file may be longer than size.
	torn   bool
	digest digest
}

// logFile is what a log needs of its file.
type logFile interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// openLog locks the session at path and finds its end. It changes nothing in
// the file.
func openLog(id, path string) (*Log, error) {
	f, err := openLocked(path)
	if err != nil {
		return nil, err
	}
	l := &Log{id: id, path: path, file: &lockedFile{f}}
	if err := l.locate(f); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// locate finds the end of what is stored, and what it adds up to.
func (l *Log) locate(f *os.File) error {
	first, err := bufio.NewReader(io.NewSectionReader(f, 0, headerLimit)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := checkHeader(first); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if l.size, err = lastNewline(f, info.Size()); err != nil {
		return err
	}
	if l.size == 0 { // A header without its newline.
		return ErrNotSession
	}
	l.torn = l.size < info.Size()
	l.digest, err = readDigest(f, l.size)
	return err
}

// readDigest returns the digest of the first size bytes of a session: from its
// end if it can, from all of it if the end is damaged.
func readDigest(f io.ReaderAt, size int64) (digest, error) {
	if d, ok := tailDigest(f, size); ok {
		return d, nil
	}
	var d digest
	_, err := readLines(io.NewSectionReader(f, 0, size), func(_ []byte, events []Event) error {
		for _, e := range events {
			d = d.plus(e)
		}
		return nil
	})
	return d, err
}

// ID returns the session's id.
func (l *Log) ID() string { return l.id }

// Path returns the path of the session's file.
func (l *Log) Path() string { return l.path }

// Append stores events as one batch: with one write and one fsync, whatever
// the size of the file. When it returns nil they are on the disk. When it
// returns an error none of them is stored and the session is as it was before;
// the log stays usable. Events with a zero Time get the present one. Raw tool
// output is left out. No events are no batch: nothing happens.
func (l *Log) Append(events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fmt.Errorf("append to session %s: %w", l.id, os.ErrClosed)
	}
	data, next, err := encodeBatch(events, l.digest, time.Now())
	if err != nil {
		return fmt.Errorf("append to session %s: %w", l.id, err)
	}
	if err := l.write(data); err != nil {
		return fmt.Errorf("append to session %s: %w; nothing of it was stored", l.id, err)
	}
	l.size += int64(len(data))
	l.digest = next
	return nil
}

// encodeBatch returns the line of a batch and the digest with it.
func encodeBatch(events []Event, d digest, now time.Time) ([]byte, digest, error) {
	events = slices.Clone(events)
	for i := range events {
		if err := events[i].check(); err != nil {
			return nil, d, err
		}
		if events[i].Time.IsZero() {
			events[i].Time = now
		}
		events[i].Time = events[i].Time.UTC()
		d = d.plus(events[i])
	}
	data, err := encode(line[Event]{Events: events, Digest: d})
	return data, d, err
}

// write stores data at the end. On failure it takes back what was written; if
// that fails too, the next write has to do it before anything else: a shorter
// line over a longer remnant would leave the end of that behind it.
func (l *Log) write(data []byte) error {
	if err := l.cut(); err != nil {
		return err
	}
	l.torn = true
	_, err := l.file.WriteAt(data, l.size)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(err, l.cut())
	}
	l.torn = false
	return nil
}

// cut removes what stands behind the last stored line.
func (l *Log) cut() error {
	if !l.torn {
		return nil
	}
	if err := l.file.Truncate(l.size); err != nil {
		return fmt.Errorf("cut off an unfinished write: %w", err)
	}
	l.torn = false
	return nil
}

// Close releases the session. Closing again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if err != nil {
		return fmt.Errorf("close session %s: %w", l.id, err)
	}
	return nil
}
