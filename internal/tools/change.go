package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/renameio/v2/maybe"

	"keen/internal/filesystem"
	"keen/internal/permission"
)

const (
	// maxEdit bounds the files that can be changed, in bytes.
	maxEdit = 16 << 20
	// maxDiffed bounds the files of which a diff is made, in bytes.
	maxDiffed = 1 << 20
	// maxDiff bounds a diff, in bytes.
	maxDiff = 64 << 10
)

// change is a file before and after a tool changed it.
type change struct {
	tool, path    string
	before, after []byte
	// existed says that the file was there before.
	existed bool
}

// load reads the file that is to be changed. A missing one is empty. Nothing
// of it is shown before permission is given.
func (w workspace) load(tool, path string) (change, error) {
	c := change{tool: tool, path: path}
	d, err := w.guard.Check(path, filesystem.AccessWrite)
	if err != nil {
		return c, err
	}
	if d.Verdict == filesystem.VerdictDeny {
		return c, fmt.Errorf("%w: %s", ErrDenied, permission.DeniedMessage(d.Reason))
	}
	info, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, fmt.Errorf("open %s: %w", path, err)
	case info.IsDir():
		return c, fmt.Errorf("%s is a directory", path)
	case !info.Mode().IsRegular():
		return c, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxEdit:
		return c, fmt.Errorf("%s is too large to change here (%d bytes); use bash", path, info.Size())
	}
	c.existed = true
	c.before, err = os.ReadFile(d.Path)
	if err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}

// apply asks for permission, shows the change and makes it. It follows
// symbolic links, keeps the file's mode and replaces its content in one step.
func (w workspace) apply(ctx context.Context, c change) (diff string, err error) {
	resolved, err := w.guard.Resolve(c.path)
	if err != nil {
		return "", err
	}
	diff = unified(w.guard.Display(resolved), c)
	verb := "Edit "
	if c.tool == writeFileName {
		verb = "Write "
	}
	d, err := w.access(ctx, c.path, filesystem.AccessWrite, permission.Request{Tool: c.tool, Action: verb + oneLine(c.path), Diff: diff})
	if err != nil {
		return "", err
	}
	now, err := w.load(c.tool, c.path)
	if err != nil {
		return "", err
	}
	if now.existed != c.existed || !bytes.Equal(now.before, c.before) {
		return "", fmt.Errorf("%s was changed by somebody else in the meantime, so nothing was written; read it again", c.path)
	}
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o755); err != nil {
		return "", fmt.Errorf("make the directory of %s: %w", c.path, err)
	}
	// This keeps the mode of a file that exists.
	if err := maybe.WriteFile(d.Path, c.after, 0o644); err != nil {
		return "", fmt.Errorf("write %s: %w", c.path, err)
	}
	return diff, nil
}

// unified returns the change as a unified diff, or a line that says why there
// is none.
func unified(name string, c change) string {
	switch {
	case bytes.Equal(c.before, c.after):
		return ""
	case len(c.before) > maxDiffed || len(c.after) > maxDiffed:
		return fmt.Sprintf("(too large for a diff: %d bytes before, %d after)\n", len(c.before), len(c.after))
	case looksBinary(c.before):
		return fmt.Sprintf("(a binary file of %d bytes is replaced)\n", len(c.before))
	}
	from := "a/" + name
	if !c.existed {
		from = "/dev/null"
	}
	before, after := printable(c.before), printable(c.after)
	diff, err := udiff.ToUnified(from, "b/"+name, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return fmt.Sprintf("(no diff: %v)\n", err)
	}
	if len(diff) <= maxDiff {
		return diff
	}
	cut := strings.LastIndexByte(diff[:maxDiff], '\n') + 1
	return diff[:cut] + fmt.Sprintf("(%d more bytes of this diff)\n", len(diff)-cut)
}

// changedLines counts the lines that a diff adds and removes.
func changedLines(diff string) string {
	added, removed := 0, 0
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
		case strings.HasPrefix(l, "+"):
			added++
		case strings.HasPrefix(l, "-"):
			removed++
		}
	}
	return fmt.Sprintf("+%d -%d", added, removed)
}
