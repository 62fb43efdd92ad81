package tools

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what is kept of a command's output, in bytes.
const (
	// inlineHead and inlineTail are what a result shows of a large output.
	// Errors tend to stand at its end.
	inlineHead = 6 << 10
	inlineTail = 10 << 10
	// maxSpill bounds the file that keeps the whole.
	maxSpill = 256 << 20
	// maxPending bounds what is reported at once.
	maxPending = 8 << 10
)

// reportEvery is the shortest time between two reports.
const reportEvery = 50 * time.Millisecond

// output collects what a command writes in bounded memory: the head, the tail,
// and in a file the whole as soon as the two do not hold it. The goroutine
// that copies owns it until close.
type output struct {
	dir    string
	report func(Progress)

	total int
	lines int
	head  []byte
	tail  []byte
	// unended says that the last line has no line feed yet.
	unended bool

	spill    *os.File
	spilled  int
	spillErr error

	pending  []byte
	reported time.Time
}

// copyFrom reads r to its end, or until it is closed.
func (o *output) copyFrom(r *os.File) {
	buf := make([]byte, 32<<10)
	for {
		if len(o.pending) > 0 {
			// Wake up to report even if nothing more comes.
			_ = r.SetReadDeadline(o.reported.Add(reportEvery))
		} else {
			_ = r.SetReadDeadline(time.Time{})
		}
		n, err := r.Read(buf)
		o.add(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.flush()
			continue
		}
		if err != nil {
			o.flush()
			o.last()
			return
		}
		if time.Since(o.reported) >= reportEvery {
			o.flush()
		}
	}
}

func (o *output) add(p []byte) {
	if len(p) == 0 {
		return
	}
	o.total += len(p)
	o.lines += bytes.Count(p, []byte("\n"))
	o.unended = p[len(p)-1] != '\n'
	o.keep(p)
	o.pending = append(o.pending, p...)
	if over := len(o.pending) - maxPending; over > 0 {
		o.pending = append(o.pending[:0], o.pending[over:]...)
	}
}

// keep distributes output over head, tail and file.
func (o *output) keep(p []byte) {
	if o.spill == nil && o.spillErr == nil && o.total > inlineHead+inlineTail {
		o.startSpill()
	}
	if o.spill != nil {
		o.write(p)
	}
	if room := inlineHead - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	o.tail = append(o.tail, p...)
	// Cutting only when twice as much is there keeps the copying cheap.
	if len(o.tail) > 2*inlineTail && o.spilling() {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-inlineTail:]...)
	}
}

func (o *output) spilling() bool { return o.spill != nil || o.spillErr != nil }

// startSpill makes the file and writes what came before.
func (o *output) startSpill() {
	if o.dir == "" {
		o.spillErr = errors.New("no directory is set for large outputs")
		return
	}
	if o.spillErr = os.MkdirAll(o.dir, 0o700); o.spillErr != nil {
		return
	}
	// CreateTemp makes files that only their owner can read.
	if o.spill, o.spillErr = os.CreateTemp(o.dir, "bash-*.txt"); o.spillErr != nil {
		return
	}
	o.write(o.head)
	o.write(o.tail)
}

func (o *output) write(p []byte) {
	if o.spillErr != nil {
		return
	}
	if o.spilled+len(p) > maxSpill {
		o.spillErr = fmt.Errorf("only the first %d MiB are kept", maxSpill>>20)
		p = p[:maxSpill-o.spilled]
	}
	n, err := o.spill.Write(p)
	o.spilled += n
	if err != nil {
		o.spillErr = err
	}
}

// flush reports what came since the last report, up to the last whole
// character.
func (o *output) flush() {
	whole := len(o.pending)
	for i := 1; i <= utf8.UTFMax && i <= whole; i++ {
		if c := o.pending[len(o.pending)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(o.pending[len(o.pending)-i:]) {
				whole -= i
			}
			break
		}
	}
	o.reported = time.Now()
	if whole == 0 {
		return
	}
	o.report(Progress{Text: printable(o.pending[:whole])})
	o.pending = append(o.pending[:0], o.pending[whole:]...)
}

// last reports the beginning of a character that never came whole.
func (o *output) last() {
	if len(o.pending) > 0 {
		o.report(Progress{Text: printable(o.pending)})
		o.pending = nil
	}
}

// close ends the collecting and returns what the model reads.
func (o *output) close() string {
	if o.unended {
		o.lines++
	}
	if o.spill != nil {
		if err := o.spill.Close(); err != nil && o.spillErr == nil {
			o.spillErr = err
		}
	}
	if o.total <= inlineHead+inlineTail {
		return printable(append(o.head, o.tail...))
	}
	head := wholeLines(o.head)
	tail := o.tail[max(0, len(o.tail)-inlineTail):]
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		tail = tail[i+1:]
	}
	var b strings.Builder
	b.WriteString(printable(head))
	fmt.Fprintf(&b, "\n[... %d bytes left out of %d (%s). %s ...]\n", o.total-len(head)-len(tail), o.total, plural(o.lines, "line"), o.whereabouts())
	b.WriteString(printable(tail))
	return b.String()
}

// whereabouts says where the whole output is.
func (o *output) whereabouts() string {
	switch {
	case o.spill == nil:
		return fmt.Sprintf("The rest is lost: %v", o.spillErr)
	case o.spillErr != nil:
		return fmt.Sprintf("A part of it is in %s: %v", o.spill.Name(), o.spillErr)
	}
	return fmt.Sprintf("All of it is in %s: open it with read_file or grep", o.spill.Name())
}

// wholeLines cuts p after its last line feed if that is not far from its end.
func wholeLines(p []byte) []byte {
	if i := bytes.LastIndexByte(p, '\n'); i > len(p)/2 {
		return p[:i+1]
	}
	return p
}
