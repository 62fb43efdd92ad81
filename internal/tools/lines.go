package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Limits of what a result shows of files.
const (
	// maxResult bounds the text of a file or of matches in a result, in
	// bytes: about 10,000 tokens.
	maxResult = 40 << 10
	// maxLine bounds one line of it, in bytes.
	maxLine = 2000
	// sniffed is how much of a file is looked at to tell text from other
	// data.
	sniffed = 8 << 10
)

// looksBinary reports whether the beginning of a file is not text.
func looksBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), sniffed)], 0) >= 0
}

// line is one line of a stream, without its line feed.
type line struct {
	// text is the beginning of the line, valid until the next one is read.
	text []byte
	// length is the whole line's, in bytes.
	length int
}

// lineReader reads a stream line by line in bounded memory.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
	// keep bounds the part of a line that is kept, in bytes.
	keep int
}

func newLineReader(r io.Reader, keep int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), keep: keep}
}

// next returns the next line, or io.EOF after the last one.
func (l *lineReader) next() (line, error) {
	l.buf = l.buf[:0]
	length := 0
	for {
		part, err := l.r.ReadSlice('\n')
		if room := l.keep - len(l.buf); room > 0 {
			l.buf = append(l.buf, part[:min(room, len(part))]...)
		}
		length += len(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0:
			return line{l.buf, length}, nil
		case err != nil:
			return line{}, err
		}
		return line{bytes.TrimSuffix(l.buf, []byte("\n")), length - 1}, nil
	}
}

// contextReader stops a read of a large file when its call is cancelled. It
// lives no longer than the call.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// printable returns text that may go into a result: valid UTF-8 without NUL.
func printable(text []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
}

// clipLine returns the beginning of a line with a note on what is left out.
func clipLine(l line) string {
	text := l.text
	if l.length <= maxLine {
		return printable(text)
	}
	cut := min(maxLine, len(text))
	for cut > 0 && cut > maxLine-utf8.UTFMax && cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s [... line of %d bytes, the rest is left out; grep shows parts of it]", printable(text[:cut]), l.length)
}

// plural returns "1 line" or "2 lines".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}
