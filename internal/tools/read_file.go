package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"keen/internal/filesystem"
	"keen/internal/permission"
)

// readFile shows a part of a text file.
type readFile struct{ workspace }

const (
	readLines = 1000
	// countUpTo bounds the files whose lines are all counted, in bytes.
	countUpTo = 64 << 20
	// maxListed bounds the entries of a directory that are shown.
	maxListed = 100
)

type readFileInput struct {
	Path   string `json:"path"`
	Offset number `json:"offset,omitempty"`
	Limit  number `json:"limit,omitempty"`
}

// Spec implements [Tool].
func (readFile) Spec() Spec {
	return Spec{
		Name: readFileName,
		Description: "Read a text file. Lines come numbered as \"number, tab, text\". At most 1000 lines or 40 KiB come at once: " +
			"use offset and limit for the rest, and grep to find the place in a large file.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"File to read, relative to the working directory or absolute"},` +
			`"offset":{"type":"integer","minimum":1,"description":"First line to show, counted from 1 (default 1)"},` +
			`"limit":{"type":"integer","minimum":1,"description":"Largest number of lines to show (default 1000)"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

// Run implements [Tool].
func (t readFile) Run(ctx context.Context, input json.RawMessage, _ func(Progress)) (Result, error) {
	in, err := decode[readFileInput](input)
	if err != nil {
		return Result{}, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return Result{}, errors.New("offset and limit must be at least 1")
	}
	in.Offset = max(in.Offset, 1)
	if in.Limit == 0 {
		in.Limit = readLines
	}
	d, err := t.access(ctx, in.Path, filesystem.AccessRead, permission.Request{Tool: readFileName, Action: Describe(readFileName, input).Label})
	if err != nil {
		return Result{}, err
	}
	file, size, err := t.open(in.Path, d)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = file.Close() }()
	if err := t.refuseBinary(file, d, size); err != nil {
		return Result{}, err
	}
	p, err := readPage(ctx, file, int(in.Offset), int(in.Limit), size)
	if err != nil {
		return Result{}, fmt.Errorf("read %s: %w", in.Path, err)
	}
	return p.result(in.Path)
}

// open opens a regular file. Anything else could block for ever.
func (t readFile) open(path string, d filesystem.Decision) (*os.File, int64, error) {
	info, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, fmt.Errorf("there is no file %s%s", path, similar(d.Path))
	case err != nil:
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	case info.IsDir():
		return nil, 0, fmt.Errorf("%s is a directory; find files in it with glob.%s", path, listing(d.Path))
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is a device, a pipe or a socket, no file to read", path)
	}
	file, err := os.Open(d.Path)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return file, info.Size(), nil
}

// refuseBinary tells data from text. Spilled output is shown whatever it is:
// the model was told to read it.
func (t readFile) refuseBinary(file *os.File, d filesystem.Decision, size int64) error {
	head := make([]byte, sniffed)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read %s: %w", d.Path, err)
	}
	head = head[:n]
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", d.Path, err)
	}
	if !looksBinary(head) || t.spilled(d.Path) {
		return nil
	}
	kind := "a binary file"
	if bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{0xFE, 0xFF}) {
		kind = "a file in UTF-16; convert it with iconv"
	}
	return fmt.Errorf("%s is %s (%d bytes), no text to show", t.guard.Display(d.Path), kind, size)
}

func (w workspace) spilled(path string) bool {
	if w.spillDir == "" {
		return false
	}
	dir, err := w.guard.Resolve(w.spillDir)
	return err == nil && filepath.Dir(path) == dir
}

// page is a part of a file.
type page struct {
	text        strings.Builder
	first, last int
	// total is the number of lines of the whole file; -1 when they were not
	// all counted.
	total int
	full  bool
}

// readPage reads limit lines from the line offset on, and goes on counting
// where the file is not too large.
func readPage(ctx context.Context, r io.Reader, offset, limit int, size int64) (*page, error) {
	p := &page{first: offset, last: offset - 1}
	lines := newLineReader(contextReader{ctx, r}, maxLine+1)
	for n := 1; ; n++ {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			p.total = n - 1
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case n < offset:
		case n-offset >= limit, p.full:
			if size > countUpTo {
				p.total = -1
				return p, nil
			}
		default:
			p.add(n, l)
		}
	}
}

func (p *page) add(n int, l line) {
	text := fmt.Sprintf("%d\t%s\n", n, clipLine(l))
	if p.text.Len() > 0 && p.text.Len()+len(text) > maxResult {
		p.full = true
		return
	}
	p.text.WriteString(text)
	p.last = n
}

func (p *page) result(path string) (Result, error) {
	shown := p.last - p.first + 1
	switch {
	case p.total == 0:
		return Result{Output: "The file is empty.", Display: Display{Summary: "empty"}}, nil
	case shown <= 0:
		return Result{}, fmt.Errorf("%s has only %s; offset %d is beyond its end", path, plural(p.total, "line"), p.first)
	}
	out := p.text.String()
	if p.first > 1 || p.last != p.total {
		of := "of a large file"
		if p.total >= 0 {
			of = fmt.Sprintf("of %d", p.total)
		}
		out += fmt.Sprintf("\n[Lines %d to %d %s.", p.first, p.last, of)
		if p.last != p.total {
			out += fmt.Sprintf(" Go on with offset %d.", p.last+1)
		}
		out += "]"
	}
	return Result{Output: out, Display: Display{Summary: plural(shown, "line")}}, nil
}

// listing returns the names in a directory, as far as they are few.
func listing(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return ""
	}
	var names []string
	for _, e := range entries[:min(len(entries), maxListed)] {
		name := oneLine(e.Name())
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	text := " It holds: " + strings.Join(names, ", ")
	if len(entries) > maxListed {
		text += fmt.Sprintf(" and %d more", len(entries)-maxListed)
	}
	return text
}

// similar suggests names for a file that does not exist.
func similar(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "; the directory does not exist either"
	}
	stem := func(name string) string {
		return strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
	}
	want := stem(filepath.Base(path))
	var names []string
	for _, e := range entries {
		if have := stem(e.Name()); len(names) < 3 && have != "" && want != "" && (strings.Contains(have, want) || strings.Contains(want, have)) {
			names = append(names, oneLine(e.Name()))
		}
	}
	if len(names) == 0 {
		return "; find it with glob"
	}
	return "; beside it there is " + strings.Join(names, ", ")
}
