package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"keen/internal/filesystem"
)

// globFiles finds files by their names.
type globFiles struct{ workspace }

const (
	globLimit    = 200
	globMaxLimit = 2000
)

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Limit   number `json:"limit,omitempty"`
}

// Spec implements [Tool].
func (globFiles) Spec() Spec {
	return Spec{
		Name: globName,
		Description: "Find files by name, the most recently changed first. \"**\" stands for any directories, {a,b} for either: " +
			"\"**/*_test.go\", \"src/**/*.{ts,tsx}\". Files that git ignores are left out.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"Pattern of the path below the directory"},` +
			`"path":{"type":"string","description":"Directory to search (default: the working directory)"},` +
			`"limit":{"type":"integer","minimum":1,"description":"Largest number of files to show (default 200, at most 2000)"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

// found is a file that a glob matched.
type found struct {
	name    string
	changed time.Time
}

// Run implements [Tool].
func (t globFiles) Run(ctx context.Context, input json.RawMessage, _ func(Progress)) (Result, error) {
	in, err := decode[globInput](input)
	if err != nil {
		return Result{}, err
	}
	limit, err := within(in.Limit, globLimit, globMaxLimit)
	if err != nil {
		return Result{}, err
	}
	pattern := filepath.ToSlash(in.Pattern)
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return Result{}, fmt.Errorf("%q is not a valid pattern", in.Pattern)
	}
	// A pattern may start with directories that lead elsewhere.
	base, pattern := doublestar.SplitPattern(pattern)
	root := in.Path
	switch {
	case filepath.IsAbs(base) || strings.HasPrefix(base, "~"):
		root = base
	case base != ".":
		root = filepath.ToSlash(orNone(root, ".")) + "/" + base
	}
	d, err := t.readable(ctx, globName, Describe(globName, input).Label, root)
	if err != nil {
		return Result{}, err
	}
	if info, err := os.Stat(d.Path); errors.Is(err, fs.ErrNotExist) {
		return Result{}, fmt.Errorf("there is no directory %s", root)
	} else if err == nil && !info.IsDir() {
		return Result{}, fmt.Errorf("%s is a file, no directory", root)
	}
	list, total, unreadable, err := t.search(ctx, d.Path, pattern, limit)
	if err != nil {
		return Result{}, err
	}
	return globResult(in, list, total, unreadable), nil
}

// search keeps the newest files in bounded memory.
func (t globFiles) search(ctx context.Context, root, pattern string, limit int) (list []found, total, unreadable int, err error) {
	newest := func(a, b found) int {
		return cmp.Or(b.changed.Compare(a.changed), strings.Compare(a.name, b.name))
	}
	unreadable, err = filesystem.Walk(ctx, root, func(e filesystem.Entry) error {
		if !doublestar.MatchUnvalidated(pattern, e.Rel) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Removed since its directory was read.
		}
		if err != nil {
			return err
		}
		total++
		list = append(list, found{t.guard.Display(e.Path), info.ModTime()})
		if len(list) >= 4*limit {
			slices.SortFunc(list, newest)
			list = list[:limit]
		}
		return nil
	})
	slices.SortFunc(list, newest)
	return list[:min(len(list), limit)], total, unreadable, err
}

func globResult(in globInput, list []found, total, unreadable int) Result {
	var out strings.Builder
	size := 0
	for i, f := range list {
		if size += len(f.name) + 1; size > maxResult {
			list = list[:i]
			break
		}
		fmt.Fprintln(&out, oneLine(f.name))
	}
	switch {
	case total == 0 && !strings.Contains(in.Pattern, "/"):
		fmt.Fprintf(&out, "No file matches. A pattern without a slash looks in one directory only; **/%s looks in all.\n", in.Pattern)
	case total == 0:
		fmt.Fprintln(&out, "No file matches. Files that git ignores are left out.")
	case total > len(list):
		fmt.Fprintf(&out, "\n[The %d most recently changed of %d files. A narrower pattern or path, or a larger limit, shows others.]\n", len(list), total)
	}
	out.WriteString(unreadableNote(unreadable))
	return Result{Output: out.String(), Display: Display{Summary: plural(total, "file")}}
}

func unreadableNote(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "[1 directory could not be read.]\n"
	}
	return fmt.Sprintf("[%d directories could not be read.]\n", n)
}

// within returns a limit of the input, or the default where it is missing.
func within(n number, standard, largest int) (int, error) {
	if n < 0 {
		return 0, errors.New("limit must be at least 1")
	}
	if n == 0 {
		return standard, nil
	}
	return min(int(n), largest), nil
}
