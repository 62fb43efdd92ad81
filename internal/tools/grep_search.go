package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// lineWindow is how much of a line is matched at once. A longer line is
	// matched in windows that overlap by windowOverlap, so that its length
	// does not matter; only a match longer than the overlap can be missed.
	lineWindow    = 1 << 20
	windowOverlap = 64 << 10
	// maxMatchLine bounds a line in the result, in bytes.
	maxMatchLine = 400
)

// search is one run of grep.
type search struct {
	pattern *regexp.Regexp
	mode    string
	include string
	limit   int
	context int

	out     strings.Builder
	matches int
	files   int
	// full says that the result holds no more; there may be other matches.
	full            bool
	secret          int
	unreadable      int
	unreadableFiles int
}

// file searches one file. It returns [fs.SkipAll] when the result is full.
func (s *search) file(ctx context.Context, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r := bufio.NewReaderSize(contextReader{ctx, file}, 64<<10)
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if looksBinary(head) {
		return nil
	}
	f := fileSearch{search: s, name: name, lines: windows{r: r}}
	err = f.run()
	if f.matches > 0 && s.mode == grepCount {
		err = errors.Join(err, s.print(fmt.Sprintf("%s:%d\n", oneLine(name), f.matches)))
	}
	if f.printed {
		s.out.WriteString("\n")
	}
	return err
}

// print adds to the result as long as there is room.
func (s *search) print(text string) error {
	if s.out.Len()+len(text) > maxResult {
		s.full = true
		return fs.SkipAll
	}
	s.out.WriteString(text)
	return nil
}

// fileSearch is the search of one file.
type fileSearch struct {
	*search
	name    string
	lines   windows
	matches int
	printed bool
	// before holds the latest lines that were not shown, as context.
	before []string
	// after counts the lines of context that still follow a match.
	after int
	last  int
}

func (f *fileSearch) run() error {
	for n := 1; ; n++ {
		text, match, err := f.lines.next(f.pattern)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case match != nil:
			if err := f.hit(n, text, match); err != nil {
				return err
			}
		case f.mode == grepContent && f.context > 0:
			if err := f.miss(n, text); err != nil {
				return err
			}
		}
		if match != nil && f.mode == grepNames {
			return nil
		}
	}
}

// hit notes a match. In the modes that show no lines the limit is about files.
func (f *fileSearch) hit(n int, text []byte, match []int) error {
	if f.matches == 0 && f.mode != grepContent {
		if f.files == f.limit {
			f.full = true
			return fs.SkipAll
		}
		if f.mode == grepNames {
			if err := f.print(oneLine(f.name) + "\n"); err != nil {
				return err
			}
		}
	}
	if f.mode == grepContent {
		if f.search.matches == f.limit {
			f.full = true
			return fs.SkipAll
		}
		if err := f.show(n, text, match); err != nil {
			return err
		}
	}
	if f.matches == 0 {
		f.files++
	}
	f.matches++
	f.search.matches++
	return nil
}

// show prints a matching line with the context before it.
func (f *fileSearch) show(n int, text []byte, match []int) error {
	var b strings.Builder
	if !f.printed {
		fmt.Fprintln(&b, oneLine(f.name))
	} else if f.context > 0 && n-len(f.before) > f.last+1 {
		b.WriteString("--\n")
	}
	for i, l := range f.before {
		fmt.Fprintf(&b, "%d-%s\n", n-len(f.before)+i, l)
	}
	fmt.Fprintf(&b, "%d:%s\n", n, around(text, match))
	if err := f.print(b.String()); err != nil {
		return err
	}
	f.printed, f.before, f.after, f.last = true, nil, f.context, n
	return nil
}

// miss prints or remembers a line that does not match.
func (f *fileSearch) miss(n int, text []byte) error {
	l := around(text, []int{0, 0})
	if f.after > 0 {
		f.after--
		f.last = n
		return f.print(fmt.Sprintf("%d-%s\n", n, l))
	}
	if len(f.before) == f.context {
		f.before = f.before[1:]
	}
	f.before = append(f.before, l)
	return nil
}

// around returns the part of a line around a match.
func around(text []byte, match []int) string {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if len(text) <= maxMatchLine {
		return printable(text)
	}
	from := max(0, min(match[0], len(text))-maxMatchLine/4)
	to := min(len(text), from+maxMatchLine)
	for from > 0 && from < to && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	cut := printable(text[from:to])
	if from > 0 {
		cut = "[...] " + cut
	}
	if to < len(text) {
		cut += " [...]"
	}
	return cut
}

// windows reads lines of any length in bounded memory and matches them.
type windows struct {
	r   *bufio.Reader
	buf []byte
}

// next reads a line. It returns the window of it that holds the first match,
// with the match's place in it, or the line's beginning and nil.
func (w *windows) next(pattern *regexp.Regexp) (text []byte, match []int, err error) {
	w.buf = w.buf[:0]
	var kept []byte // The matching window, once the line has more.
	first, read := true, false
	for {
		part, err := w.r.ReadSlice('\n')
		w.buf = append(w.buf, part...)
		read = read || len(part) > 0
		ended := !errors.Is(err, bufio.ErrBufferFull)
		switch {
		case ended && err != nil && (!errors.Is(err, io.EOF) || !read):
			return nil, nil, err
		case !ended && len(w.buf) < lineWindow:
			continue
		}
		window := bytes.TrimSuffix(w.buf, []byte("\n"))
		if match == nil {
			match = matchWindow(pattern, window, first, ended)
			if match != nil && ended || first && ended {
				return window, match, nil
			}
			if match != nil || kept == nil {
				kept = bytes.Clone(window[:min(len(window), keptOf(match))])
			}
		}
		if ended {
			return kept, match, nil
		}
		first = false
		w.buf = append(w.buf[:0], w.buf[len(w.buf)-windowOverlap:]...)
	}
}

// keptOf returns how much of a window is needed to show a match in it.
func keptOf(match []int) int {
	if match == nil {
		return 2 * maxMatchLine
	}
	return match[0] + 2*maxMatchLine
}

// matchWindow matches a part of a line. Windows overlap, so a match that only
// seems to be one because the window ends or begins there is left to the
// window that shows more of it.
func matchWindow(pattern *regexp.Regexp, window []byte, first, last bool) []int {
	trimmed := window
	if last {
		trimmed = bytes.TrimSuffix(window, []byte("\r"))
	}
	if first && last {
		return pattern.FindIndex(trimmed)
	}
	for _, match := range pattern.FindAllIndex(trimmed, 2) {
		atStart := !first && match[0] == 0 && match[1] < windowOverlap
		atEnd := !last && match[1] == len(trimmed) && match[0] >= len(trimmed)-windowOverlap
		if !atStart && !atEnd {
			return match
		}
	}
	return nil
}

// result words what was found.
func (s *search) result() Result {
	out := strings.TrimRight(s.out.String(), "\n")
	if out != "" {
		out += "\n"
	}
	summary := plural(s.matches, "match") + " in " + plural(s.files, "file")
	switch {
	case s.matches == 0 && !s.full:
		out, summary = "No match.\n", "no match"
	case s.full:
		summary += ", truncated"
		out += fmt.Sprintf("\n[Stopped after %s in %s; there are more. A narrower pattern, path or include, or a larger limit, shows the others.]\n",
			plural(s.matches, "match"), plural(s.files, "file"))
	case s.mode == grepNames:
		summary = plural(s.files, "file")
	}
	if s.secret > 0 {
		out += fmt.Sprintf("[%s that may hold secrets left out; name the file as path to search it.]\n", plural(s.secret, "file"))
	}
	if s.unreadableFiles > 0 {
		out += fmt.Sprintf("[%s could not be read.]\n", plural(s.unreadableFiles, "file"))
	}
	out += unreadableNote(s.unreadable)
	return Result{Output: out, Display: Display{Summary: summary}}
}
