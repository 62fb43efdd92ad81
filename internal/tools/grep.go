package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"keen/internal/filesystem"
)

// grepFiles finds text in files.
type grepFiles struct{ workspace }

const (
	grepLimit      = 200
	grepMaxLimit   = 5000
	grepMaxContext = 20
)

// The output modes of grep.
const (
	grepContent = "content"
	grepNames   = "files"
	grepCount   = "count"
)

type grepInput struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty"`
	Include    string `json:"include,omitempty"`
	OutputMode string `json:"output_mode,omitempty"`
	Context    number `json:"context,omitempty"`
	IgnoreCase flag   `json:"ignore_case,omitempty"`
	Limit      number `json:"limit,omitempty"`
}

// Spec implements [Tool].
func (grepFiles) Spec() Spec {
	return Spec{
		Name: grepName,
		Description: "Search file contents with a regular expression (RE2), line by line. Results are grouped by file, as \"number:text\" " +
			"for matches and \"number-text\" for context. Files that git ignores, binary files and files that may hold secrets are left out. " +
			"Prefer it to grep in bash.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"Regular expression"},` +
			`"path":{"type":"string","description":"File or directory to search (default: the working directory)"},` +
			`"include":{"type":"string","description":"Only files like this, such as *.go or src/**/*.{ts,tsx}"},` +
			`"output_mode":{"type":"string","enum":["content","files","count"],"description":"Matching lines, names of files, or matches per file (default content)"},` +
			`"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show before and after a match (default 0)"},` +
			`"ignore_case":{"type":"boolean","description":"Ignore case (default false)"},` +
			`"limit":{"type":"integer","minimum":1,"description":"Largest number of matches, or of files, to show (default 200, at most 5000)"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

// Run implements [Tool].
func (t grepFiles) Run(ctx context.Context, input json.RawMessage, _ func(Progress)) (Result, error) {
	in, err := decode[grepInput](input)
	if err != nil {
		return Result{}, err
	}
	s, err := newSearch(in)
	if err != nil {
		return Result{}, err
	}
	d, err := t.readable(ctx, grepName, Describe(grepName, input).Label, in.Path)
	if err != nil {
		return Result{}, err
	}
	info, err := os.Stat(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, fmt.Errorf("there is no file or directory %s%s", in.Path, similar(d.Path))
	}
	if err != nil {
		return Result{}, fmt.Errorf("search %s: %w", in.Path, err)
	}
	s.unreadable, err = filesystem.Walk(ctx, d.Path, func(e filesystem.Entry) error {
		return t.visit(ctx, s, e, info.IsDir())
	})
	if err != nil {
		return Result{}, err
	}
	return s.result(), nil
}

// visit searches a file that the walk found. below says that the path was a
// directory: a file that was asked for by name is searched whatever it is.
func (t grepFiles) visit(ctx context.Context, s *search, e filesystem.Entry, below bool) error {
	if !e.Type().IsRegular() || below && !s.included(e.Rel) {
		return nil
	}
	if below && t.guard.MayHoldSecrets(e.Path) {
		s.secret++
		return nil
	}
	err := s.file(ctx, e.Path, t.guard.Display(e.Path))
	if err != nil && ctx.Err() == nil && !errors.Is(err, fs.SkipAll) {
		s.unreadableFiles++
		return nil
	}
	return err
}

// newSearch validates what is searched for.
func newSearch(in grepInput) (*search, error) {
	limit, err := within(in.Limit, grepLimit, grepMaxLimit)
	if err != nil {
		return nil, err
	}
	s := &search{mode: orNone(in.OutputMode, grepContent), limit: limit, context: int(in.Context), include: filepath.ToSlash(in.Include)}
	switch {
	case in.Pattern == "":
		return nil, errors.New("pattern is empty")
	case s.context < 0 || s.context > grepMaxContext:
		return nil, fmt.Errorf("context must be 0 to %d", grepMaxContext)
	case !slices.Contains([]string{grepContent, grepNames, grepCount}, s.mode):
		return nil, fmt.Errorf("there is no output_mode %q; use content, files or count", in.OutputMode)
	case s.include != "" && !doublestar.ValidatePattern(s.include):
		return nil, fmt.Errorf("include %q is not a valid pattern", in.Include)
	case strings.Contains(in.Pattern, "\n") || strings.Contains(strings.ReplaceAll(in.Pattern, `\\`, ""), `\n`):
		return nil, errors.New("the search goes line by line, so a pattern with a line break never matches; search for one line and use context")
	}
	expression := in.Pattern
	if in.IgnoreCase {
		expression = "(?i)" + expression
	}
	if s.pattern, err = regexp.Compile(expression); err != nil {
		return nil, fmt.Errorf("the pattern is no valid regular expression (RE2, without look-around and back references): %w", err)
	}
	return s, nil
}

// included reports whether a file is searched. A pattern without a slash is
// about the name alone.
func (s *search) included(rel string) bool {
	switch {
	case s.include == "":
		return true
	case !strings.Contains(s.include, "/"):
		return doublestar.MatchUnvalidated(s.include, path.Base(rel))
	}
	return doublestar.MatchUnvalidated(s.include, rel)
}
