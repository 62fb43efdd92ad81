package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// editFile replaces exact text in a file.
type editFile struct{ workspace }

type editFileInput struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll flag   `json:"replace_all,omitempty"`
}

// Spec implements [Tool].
func (editFile) Spec() Spec {
	return Spec{
		Name: editFileName,
		Description: "Replace text in a file. old_string must be exactly the text of the file, white space included and without the line " +
			"numbers of read_file, and must occur once unless replace_all is true: give enough lines around the place. " +
			"Line endings of the file are kept.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"File to change, relative to the working directory or absolute"},` +
			`"old_string":{"type":"string","description":"The exact text to replace"},` +
			`"new_string":{"type":"string","description":"The text to put in its place"},` +
			`"replace_all":{"type":"boolean","description":"Replace every occurrence (default false)"}},` +
			`"required":["path","old_string","new_string"],"additionalProperties":false}`),
	}
}

// Run implements [Tool].
func (t editFile) Run(ctx context.Context, input json.RawMessage, _ func(Progress)) (Result, error) {
	in, err := decode[editFileInput](input)
	if err != nil {
		return Result{}, err
	}
	if in.OldString == "" {
		return Result{}, errors.New("old_string is empty; use write_file to make a file or to replace all of it")
	}
	if in.OldString == in.NewString {
		return Result{}, errors.New("old_string and new_string are the same, so there is nothing to change")
	}
	// What the edit says about the file's text is an answer about its
	// content, so reading must be allowed before it is looked for.
	if _, err := t.readable(ctx, editFileName, "Edit "+oneLine(in.Path), in.Path); err != nil {
		return Result{}, err
	}
	c, err := t.load(editFileName, in.Path)
	if err != nil {
		return Result{}, err
	}
	if !c.existed {
		resolved, err := t.guard.Resolve(in.Path)
		if err != nil {
			return Result{}, err
		}
		return Result{}, fmt.Errorf("there is no file %s%s", in.Path, similar(resolved))
	}
	after, count, err := replace(string(c.before), in)
	if err != nil {
		return Result{}, err
	}
	c.after = []byte(after)
	diff, err := t.apply(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Output:  fmt.Sprintf("Replaced %s in %s.", plural(count, "occurrence"), in.Path),
		Display: Display{Summary: changedLines(diff), Diff: diff},
	}, nil
}

// replace makes an edit of text and returns how often it did.
func replace(text string, in editFileInput) (after string, count int, err error) {
	old, replacement := in.OldString, in.NewString
	count = strings.Count(text, old)
	if count == 0 {
		// The model rarely sees how lines end, so the file decides.
		old, replacement = likeFile(text, old), likeFile(text, replacement)
		count = strings.Count(text, old)
	} else if strings.Contains(text, "\r\n") && !strings.Contains(replacement, "\r") && !strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") {
		replacement = likeFile(text, replacement)
	}
	switch {
	case count == 0:
		return "", 0, notFound(text, in)
	case count > 1 && !bool(in.ReplaceAll):
		return "", 0, fmt.Errorf("old_string occurs %d times in %s, at lines %s; add lines around the place you mean, or set replace_all",
			count, in.Path, places(text, old))
	case count > 1:
		return strings.ReplaceAll(text, old, replacement), count, nil
	}
	return strings.Replace(text, old, replacement, 1), 1, nil
}

// likeFile returns s with the line endings that text has.
func likeFile(text, s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.Contains(text, "\r\n") {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// maxPlaces bounds the line numbers that an error lists.
const maxPlaces = 10

func places(text, old string) string {
	var lines []string
	at, number := 0, 1
	for len(lines) < maxPlaces {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		number += strings.Count(text[at:at+i], "\n")
		lines = append(lines, strconv.Itoa(number))
		number += strings.Count(old, "\n")
		at += i + len(old)
	}
	if strings.Contains(text[at:], old) {
		lines = append(lines, "...")
	}
	return strings.Join(lines, ", ")
}

// numbered is a line as read_file shows it.
var numbered = regexp.MustCompile(`(?m)^ *[0-9]+\t`)

// notFound says why an edit's text may not be in the file.
func notFound(text string, in editFileInput) error {
	if bare := numbered.ReplaceAllString(in.OldString, ""); bare != in.OldString && strings.Contains(text, likeFile(text, bare)) {
		return errors.New("old_string holds the line numbers of read_file; leave them out")
	}
	if first, last, ok := looseMatch(text, in.OldString); ok {
		lines := strings.Split(text, "\n")[first:last]
		return fmt.Errorf("old_string is not in %s exactly as it is, but lines %d to %d differ from it only in white space. They are:\n%s",
			in.Path, first+1, last, clip(strings.Join(lines, "\n"), maxLine))
	}
	if trimmed := strings.TrimSpace(in.OldString); trimmed != "" {
		line, _, _ := strings.Cut(trimmed, "\n")
		if line = strings.TrimSpace(line); strings.Contains(text, line) && line != trimmed {
			return fmt.Errorf("old_string is not in %s; its first line is there, at %s, but what follows differs. Read the file again",
				in.Path, "line "+places(text, line))
		}
	}
	return fmt.Errorf("old_string is not in %s; read the file again and copy the text exactly", in.Path)
}

// looseMatch finds the lines that equal old but for white space.
func looseMatch(text, old string) (first, last int, ok bool) {
	want := looseLines(strings.Trim(old, "\r\n"))
	have := looseLines(text)
	if strings.Join(want, "") == "" {
		return 0, 0, false
	}
	for first = 0; first+len(want) <= len(have); first++ {
		i := 0
		for i < len(want) && have[first+i] == want[i] {
			i++
		}
		if i == len(want) {
			return first, first + i, true
		}
	}
	return 0, 0, false
}

func looseLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), "")
	}
	return lines
}
