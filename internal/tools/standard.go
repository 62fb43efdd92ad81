package tools

import (
	"context"
	"errors"
	"fmt"

	"keen/internal/filesystem"
	"keen/internal/permission"
)

// Options are what the standard tools work with.
type Options struct {
	// Dir is the working directory. It is only used where Guard is nil.
	Dir string
	// Guard decides about paths; its working directory is where commands
	// run. It lets SpillDir be read without a question.
	Guard *filesystem.Guard
	// Approver decides about everything the tools do. Without one, only what
	// needs no question is done.
	Approver permission.Approver
	// SpillDir takes outputs that are too large for a result. It is made
	// when it is first needed; when it is empty, what does not fit is lost.
	SpillDir string
}

// Standard returns the tools of a coding agent: read_file, write_file,
// edit_file, glob, grep and bash. It panics when Guard is nil and Dir is no
// directory: callers that take a directory from the user make the guard
// themselves.
func Standard(o Options) []Tool {
	if o.Guard == nil {
		guard, err := filesystem.NewGuard(o.Dir, filesystem.Options{Readable: spillDirs(o.SpillDir)})
		if err != nil {
			panic("tools: " + err.Error())
		}
		o.Guard = guard
	}
	w := workspace{guard: o.Guard, approver: o.Approver, spillDir: o.SpillDir}
	return []Tool{readFile{w}, writeFile{w}, editFile{w}, globFiles{w}, grepFiles{w}, bash{w}}
}

func spillDirs(dir string) []string {
	if dir == "" {
		return nil
	}
	return []string{dir}
}

// workspace is what all standard tools share. It is immutable.
type workspace struct {
	guard    *filesystem.Guard
	approver permission.Approver
	spillDir string
}

// approve asks for permission. It returns nil when it is given, and an error
// that wraps ErrDenied when it is not.
func (w workspace) approve(ctx context.Context, r permission.Request) error {
	approver := w.approver
	if approver == nil {
		approver = permission.NewPolicy(permission.PolicyOptions{})
	}
	d, err := approver.Approve(ctx, r)
	if err != nil {
		return fmt.Errorf("ask for permission: %w", err)
	}
	if !d.Allowed {
		return fmt.Errorf("%w: %s", ErrDenied, orNone(d.Message, "the user did not allow this"))
	}
	return nil
}

// access resolves a path and asks for permission to use it. It returns the
// path to use.
func (w workspace) access(ctx context.Context, path string, a filesystem.Access, r permission.Request) (filesystem.Decision, error) {
	d, err := w.guard.Check(path, a)
	if err != nil {
		return d, err
	}
	r.Verdict, r.Reason = permission.Verdict(d.Verdict), d.Reason
	r.Paths, r.Outside, r.Write = []string{d.Path}, !d.Inside, a == filesystem.AccessWrite
	if a == filesystem.AccessWrite && d.Inside {
		r.Pattern = r.Tool
	}
	if err := w.approve(ctx, r); err != nil {
		return d, err
	}
	// The answer may have taken long, and a link may lead elsewhere now.
	now, err := w.guard.Resolve(path)
	if err != nil {
		return d, err
	}
	if now != d.Path {
		return d, errors.New("the path leads elsewhere than when permission was asked; nothing was done")
	}
	return d, nil
}

// readable checks a path that a search starts from.
func (w workspace) readable(ctx context.Context, tool, action, path string) (filesystem.Decision, error) {
	if path == "" {
		path = "."
	}
	return w.access(ctx, path, filesystem.AccessRead, permission.Request{Tool: tool, Action: action})
}
