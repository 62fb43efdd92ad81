// Package frontmatter reads Markdown files that begin with YAML between two
// lines of three dashes: skills, commands and agents are written so.
//
// [Parse] splits a file into its [Document]; the accessors of a Document say
// what a field has to be and on which line it stands when it is not. Files of
// other agents are read as their authors wrote them: a value with a colon in
// it, which YAML takes for a mapping, is a string here.
package frontmatter

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// Document is a file that was split.
type Document struct {
	// Path is the file, for messages.
	Path string
	// Body is what stands behind the front matter, the whole text where
	// there is none.
	Body string

	fields map[string]any
	// lines are the lines on which the fields stand, from 1.
	lines map[string]int
}

// Error is a fault of a file.
type Error struct {
	Path string
	// Line is where it is, from 1.
	Line int
	// Reason says what is wrong and what is wanted.
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason) }

// Parse splits the text of a file. A file without front matter has no fields.
// Errors are of type [*Error].
func Parse(path string, text []byte) (Document, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return Document{}, &Error{path, 1, "the file is not text in UTF-8"}
	}
	whole := strings.ReplaceAll(string(text), "\r\n", "\n")
	d := Document{Path: path, Body: whole}
	rest, found := strings.CutPrefix(whole, "---\n")
	if !found {
		return d, nil
	}
	header, body, closed := cut(rest)
	if !closed {
		return Document{}, &Error{path, 1, "the front matter has no end: a line of three dashes has to follow it"}
	}
	d.Body, d.lines = body, linesOf(header)
	if err := d.unmarshal(header); err != nil {
		return Document{}, err
	}
	return d, nil
}

// cut separates the front matter from the body.
func cut(rest string) (header, body string, closed bool) {
	offset := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == "---" {
			return rest[:offset], rest[offset+len(line):], true
		}
		offset += len(line)
	}
	return rest, "", false
}

// topLevel is a line that begins a field.
var topLevel = regexp.MustCompile(`^([A-Za-z0-9_-]+):(?:[ \t]+(.*))?$`)

func linesOf(header string) map[string]int {
	lines := make(map[string]int)
	n := 1
	for line := range strings.Lines(header) {
		n++
		if m := topLevel.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			lines[m[1]] = n
		}
	}
	return lines
}

// unmarshal reads the fields: as YAML, and where that fails, once more with the
// plain values quoted.
func (d *Document) unmarshal(header string) error {
	err := yaml.Unmarshal([]byte(header), &d.fields)
	if err == nil {
		return nil
	}
	d.fields = nil
	if yaml.Unmarshal([]byte(quotePlain(header)), &d.fields) == nil {
		return nil
	}
	line, reason := 1, yaml.FormatError(err, false, false)
	if m := position.FindStringSubmatch(reason); m != nil {
		_, _ = fmt.Sscan(m[1], &line)
		reason = m[2]
	}
	reason, _, _ = strings.Cut(reason, "\n")
	return &Error{d.Path, line + 1, "the front matter is no valid YAML: " + reason}
}

// position is where the YAML library says that an error is.
var position = regexp.MustCompile(`^\[(\d+):\d+\] (.*)`)

// quotePlain quotes the plain values of top-level fields that hold a colon or
// begin with a character that means something in YAML.
func quotePlain(header string) string {
	var b strings.Builder
	for line := range strings.Lines(header) {
		line = strings.TrimRight(line, "\n")
		m := topLevel.FindStringSubmatch(line)
		if m != nil && m[2] != "" && !strings.ContainsAny(m[2][:1], `"'|>[{&*#`) {
			line = m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Has reports whether there is such a field.
func (d Document) Has(field string) bool {
	_, ok := d.fields[field]
	return ok
}

// Text returns a field that is a text, a number or a truth value; empty where
// it is missing.
func (d Document) Text(field string) (string, error) {
	switch v := d.fields[field].(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), nil
	}
	return "", d.fault(field, "has to be a text")
}

// List returns a field that is a list of texts, or a text with commas between
// its items.
func (d Document) List(field string) ([]string, error) {
	switch v := d.fields[field].(type) {
	case nil:
		return nil, nil
	case string:
		return items(splitOutside(v)), nil
	case []any:
		var list []string
		for _, item := range v {
			switch item.(type) {
			case string, int, int64, uint64, float64, bool:
				list = append(list, fmt.Sprint(item))
			default:
				return nil, d.fault(field, "has to be a list of texts")
			}
		}
		return items(list), nil
	}
	return nil, d.fault(field, "has to be a list of texts")
}

// splitOutside splits a text at the commas that stand in no parentheses, as in
// "Read, Bash(git log, git diff)".
func splitOutside(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth <= 0
	})
}

func items(list []string) []string {
	var kept []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// Flag returns a field that is true or false; otherwise where it is missing.
func (d Document) Flag(field string, otherwise bool) (bool, error) {
	switch v := d.fields[field].(type) {
	case nil:
		return otherwise, nil
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes", "on":
			return true, nil
		case "false", "no", "off":
			return false, nil
		}
	}
	return false, d.fault(field, "has to be true or false")
}

// Fault returns an error at a field of the file.
func (d Document) Fault(field, reason string) *Error { return d.fault(field, reason) }

func (d Document) fault(field, reason string) *Error {
	return &Error{d.Path, max(d.lines[field], 1), field + " " + reason}
}
