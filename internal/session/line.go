package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The file format. The first line is a [header]; every line after it is a
// [line], the JSON object of one batch. A batch shares a line because a line
// is what a torn write cuts: it was stored if and only if its newline was, so
// no half of a batch can ever be seen and the reader needs no bookkeeping.
// Everything after the last newline of a file is what a crash or a power loss
// left, whatever bytes it holds.

const (
	formatName    = "keen-session"
	formatVersion = 1
)

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// line is a stored batch. The digest comes last, so that it can be read from
// the end of the file without the events before it.
type line[E any] struct {
	Events []E    `json:"events"`
	Digest digest `json:"digest"`
}

// digestMark stands before the digest of every line. No string in the events
// can contain it, because JSON escapes the quotes in strings, and no other
// object can follow the digest: its last occurrence is the real one.
const digestMark = `],"digest":`

// digest sums up a session up to and including the line that carries it. It
// stays below [digestLimit] bytes.
type digest struct {
	Events  int       `json:"events"`
	Turns   int       `json:"turns"`
	Title   string    `json:"title,omitempty"`
	Preview string    `json:"preview,omitempty"`
	Updated time.Time `json:"updated"`
}

const (
	// previewLimit bounds title and preview, in bytes.
	previewLimit = 200
	// digestLimit is more than an encoded digest ever takes.
	digestLimit = 4 << 10
)

// plus returns the digest with one more event.
func (d digest) plus(e Event) digest {
	d.Events++
	if !e.Time.IsZero() {
		d.Updated = e.Time
	}
	switch e.Kind {
	case KindUserMessage:
		d.Turns++
		d.Preview = preview(e.Text)
	case KindSessionStarted, KindSessionRenamed:
		d.Title = preview(e.Title)
	}
	return d
}

// preview makes one short line of text that is safe on a terminal.
func preview(text string) string {
	// A few times the limit is enough to fill it, and bounds the work.
	text = text[:min(len(text), 8*previewLimit)]
	text = strings.ToValidUTF8(text, "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) <= previewLimit {
		return text
	}
	return strings.ToValidUTF8(text[:previewLimit-len("…")], "") + "…"
}

// encode returns v as one line, newline included.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decodeLine returns the events of a line. One that cannot be read spoils its
// line: a batch is all or nothing.
func decodeLine(data []byte) ([]Event, error) {
	var fast line[Event]
	if json.Unmarshal(data, &fast) == nil {
		for i, e := range fast.Events {
			if !e.Kind.known() {
				fast.Events[i] = Event{Kind: e.Kind, Time: e.Time}
			}
		}
		return fast.Events, nil
	}
	// An unknown kind may use a known field in its own way.
	var raw line[json.RawMessage]
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	events := make([]Event, len(raw.Events))
	for i, r := range raw.Events {
		e, err := decodeEvent(r)
		if err != nil {
			return nil, err
		}
		events[i] = e
	}
	return events, nil
}

func decodeEvent(data []byte) (Event, error) {
	var head struct {
		Kind Kind            `json:"kind"`
		Time json.RawMessage `json:"time"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Event{}, err
	}
	if head.Kind.known() {
		var e Event
		err := json.Unmarshal(data, &e)
		return e, err
	}
	e := Event{Kind: head.Kind}
	if json.Unmarshal(head.Time, &e.Time) != nil {
		e.Time = time.Time{}
	}
	return e, nil
}

// checkHeader refuses a file that this version cannot read or must not touch.
func checkHeader(data []byte) error {
	var h header
	if json.Unmarshal(data, &h) != nil || h.Format != formatName || h.Version < 1 {
		return ErrNotSession
	}
	if h.Version > formatVersion {
		return fmt.Errorf("%w: it has format %d, this version reads %d; update keen to open it", ErrNewerFormat, h.Version, formatVersion)
	}
	return nil
}

// readLines reads a session and calls visit with the bytes and the events of
// each complete line after the header, in order. The bytes are visit's to
// keep. Lines may have any length.
func readLines(r io.Reader, visit func(data []byte, events []Event) error) (Recovery, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	data, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return Recovery{}, err
	}
	if err != nil { // The header itself is cut off.
		return Recovery{}, ErrNotSession
	}
	if err := checkHeader(data); err != nil {
		return Recovery{}, err
	}
	var rec Recovery
	for number := 2; ; number++ {
		data, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			rec.TornBytes = int64(len(data))
			return rec, nil
		}
		if err != nil {
			return rec, err
		}
		events, err := decodeLine(data)
		if err != nil {
			rec.DamagedLines = append(rec.DamagedLines, number)
			continue
		}
		if err := visit(data, events); err != nil {
			return rec, err
		}
	}
}

// tailDigest reads the digest of the last complete line from the end of the
// file. It reports false where there is none, which is no error: a whole read
// finds out more.
func tailDigest(f io.ReaderAt, size int64) (digest, bool) {
	start := max(0, size-digestLimit)
	tail := make([]byte, size-start)
	if _, err := f.ReadAt(tail, start); err != nil && !errors.Is(err, io.EOF) {
		return digest{}, false
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	tail, ok := bytes.CutSuffix(tail, []byte("}\n"))
	if !ok {
		return digest{}, false
	}
	mark := bytes.LastIndex(tail, []byte(digestMark))
	if mark < 0 {
		return digest{}, false
	}
	// The line may begin outside what was read; a newline after the mark is
	// one between lines, so the mark would not be the last line's.
	tail = tail[mark+len(digestMark):]
	var d digest
	if slices.Contains(tail, '\n') || json.Unmarshal(tail, &d) != nil {
		return digest{}, false
	}
	return d, true
}

// lastNewline returns the offset just after the last newline in the first size
// bytes, 0 when there is none. It reads from the end.
func lastNewline(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(buf)))
		chunk := buf[:end-start]
		if _, err := f.ReadAt(chunk, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}
