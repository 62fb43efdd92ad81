package repl

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// joiner is the way to the terminal. Bubble Tea writes what it prints above the
// picture at once and the new picture a little later: for a moment, lines that
// went from the one to the other would be there twice. The joiner keeps the
// first back for that moment and writes both together.
type joiner struct {
	mu   sync.Mutex
	out  io.Writer
	held []byte
	// timer writes what is held when no picture comes.
	timer *time.Timer
	err   error
}

// joinTime is how long a print waits for its picture: a little more than Bubble
// Tea takes between two of them.
const joinTime = 2 * time.Second / framesPerSecond

// syncBegin begins an update that the terminal shows as a whole.
const syncBegin = "\x1b[?2026h"

func newJoiner(out io.Writer) *joiner { return &joiner{out: out} }

// Write writes p, or keeps it back for a moment when it is a print.
func (j *joiner) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return 0, j.err
	}
	switch rest, synced := bytes.CutPrefix(p, []byte(syncBegin)); {
	case isPrint(p):
		if len(j.held) == 0 {
			j.timer = time.AfterFunc(joinTime, j.flush)
		}
		j.held = append(j.held, p...)
		return len(p), nil
	case len(j.held) == 0:
		return j.out.Write(p)
	case synced:
		j.write(syncBegin, string(j.held), string(rest))
	default:
		j.write(string(j.held), string(p))
	}
	return len(p), j.err
}

// WriteString is like Write.
func (j *joiner) WriteString(s string) (int, error) { return j.Write([]byte(s)) }

// flush writes what is held.
func (j *joiner) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.held) > 0 {
		j.write(string(j.held))
	}
}

// write writes parts, and forgets what was held.
func (j *joiner) write(parts ...string) {
	var b bytes.Buffer
	for _, part := range parts {
		b.WriteString(part)
	}
	j.held = nil
	j.timer.Stop()
	_, j.err = j.out.Write(b.Bytes())
}

// isPrint reports whether Bubble Tea prints something above the picture: it
// makes room below, goes up and inserts lines. A mistake would do no harm, as
// the order of all writes stays.
func isPrint(p []byte) bool {
	rest, ok := bytes.CutPrefix(p, []byte("\r"))
	if !ok {
		return false
	}
	rest, _ = cutSequence(rest, 'B')
	below := bytes.TrimLeft(rest, "\n")
	if len(below) == len(rest) {
		return false
	}
	rest, _ = cutSequence(below, 'A')
	_, ok = cutSequence(rest, 'L')
	return ok
}

// cutSequence takes a control sequence with the given final byte off the front.
func cutSequence(p []byte, final byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(p, []byte("\x1b["))
	if !ok {
		return p, false
	}
	rest = bytes.TrimLeft(rest, "0123456789")
	if len(rest) == 0 || rest[0] != final {
		return p, false
	}
	return rest[1:], true
}

// terminalFile is a joiner for a terminal that Bubble Tea can still ask for its
// size and its modes.
type terminalFile struct {
	*os.File
	joiner *joiner
}

func (f terminalFile) Write(p []byte) (int, error)       { return f.joiner.Write(p) }
func (f terminalFile) WriteString(s string) (int, error) { return f.joiner.WriteString(s) }

// joined returns a writer for the program, and what writes its last words.
func joined(out io.Writer) (io.Writer, func()) {
	j := newJoiner(out)
	if file, ok := out.(*os.File); ok {
		return terminalFile{File: file, joiner: j}, j.flush
	}
	return j, j.flush
}
