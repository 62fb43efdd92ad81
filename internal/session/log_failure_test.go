package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var errDiskFull = errors.New("no space left on device")

// faultyFile is the log's file with failures in it, counting what is done.
type faultyFile struct {
	logFile
	// room is how many bytes can be written before the disk is full.
	room                    int
	syncErr, truncateErr    error
	writes, syncs, truncate int
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	f.writes++
	n, err := f.logFile.WriteAt(p[:min(len(p), f.room)], off)
	f.room -= n
	if err == nil && n < len(p) {
		err = errDiskFull
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	f.syncs++
	return errors.Join(f.syncErr, f.logFile.Sync())
}

func (f *faultyFile) Truncate(size int64) error {
	f.truncate++
	if f.truncateErr != nil {
		return f.truncateErr
	}
	return f.logFile.Truncate(size)
}

const plenty = 1 << 30

func faultyLog(t *testing.T) (*Log, *faultyFile) {
	t.Helper()
	s, err := NewStore(filepath.Join(t.TempDir(), "state"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Create(CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &faultyFile{logFile: l.file, room: plenty}
	l.file = f
	return l, f
}

func said(text string) Event { return Event{Kind: KindUserMessage, Text: text} }

func texts(t *testing.T, l *Log) string {
	t.Helper()
	events, rec, err := Load(l.Path())
	if err != nil || rec.String() != "" {
		t.Fatalf("load: %v, %s", err, rec)
	}
	var all []string
	for _, e := range events[1:] {
		all = append(all, e.Text)
	}
	return strings.Join(all, " ")
}

func TestABatchIsOneWriteAndOneSync(t *testing.T) {
	l, f := faultyLog(t)
	for _, size := range []int{1, 10 << 20, 1} {
		*f = faultyFile{logFile: f.logFile, room: plenty}
		if err := l.Append(said(strings.Repeat("x", size)), said("y")); err != nil {
			t.Fatal(err)
		}
		if f.writes != 1 || f.syncs != 1 || f.truncate != 0 {
			t.Errorf("%d writes, %d syncs, %d cuts", f.writes, f.syncs, f.truncate)
		}
	}
}

func TestAWriteThatFailsLeavesNothing(t *testing.T) {
	l, f := faultyLog(t)
	if err := l.Append(said("one")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	for room := range 120 {
		f.room = room
		err := l.Append(said(strings.Repeat("x", 200)), said("y"))
		if !errors.Is(err, errDiskFull) || !strings.Contains(err.Error(), "nothing of it was stored") {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
		after, err := os.ReadFile(l.Path())
		if err != nil || !bytes.Equal(before, after) {
			t.Fatalf("with room for %d bytes the file is %q: %v", room, after, err)
		}
	}
	f.room = plenty
	if err := l.Append(said("two")); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, l); got != "one two" {
		t.Errorf("stored: %s", got)
	}
}

func TestASyncThatFailsLeavesNothing(t *testing.T) {
	l, f := faultyLog(t)
	f.syncErr = errors.New("input/output error")
	if err := l.Append(said("lost")); !errors.Is(err, f.syncErr) {
		t.Fatalf("got %v", err)
	}
	f.syncErr = nil
	if err := l.Append(said("kept")); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, l); got != "kept" {
		t.Errorf("stored: %s", got)
	}
}

func TestARemnantThatCannotBeCutIsCutBeforeTheNextWrite(t *testing.T) {
	l, f := faultyLog(t)
	f.room, f.truncateErr = 100, errors.New("read-only file system")
	err := l.Append(said(strings.Repeat("x", 500)))
	if !errors.Is(err, errDiskFull) || !errors.Is(err, f.truncateErr) {
		t.Fatalf("got %v", err)
	}
	f.room = plenty
	if err := l.Append(said("too early")); !errors.Is(err, f.truncateErr) {
		t.Fatalf("appended behind a remnant: %v", err)
	}
	if events, rec, err := Load(l.Path()); err != nil || len(events) != 1 || rec.TornBytes != 100 {
		t.Fatalf("loaded %d events, %v, %v", len(events), rec, err)
	}
	f.truncateErr = nil
	if err := l.Append(said("y")); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, l); got != "y" {
		t.Errorf("stored: %s", got)
	}
}
