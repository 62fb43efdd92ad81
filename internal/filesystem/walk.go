package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Entry is a file that [Walk] found.
type Entry struct {
	// Path is the file's path below the root that was given to Walk,
	// absolute if that was.
	Path string
	// Rel is the path relative to the root, with slashes.
	Rel string
	// DirEntry tells its name and type. A symbolic link is reported as one
	// and never followed.
	fs.DirEntry
}

// Walk calls fn for every file below root, in the order of their names, one
// directory at a time. It leaves out git's own directory and what .gitignore
// files and .git/info/exclude exclude; files above root count as far as the
// repository reaches, but a root that is ignored itself is walked all the
// same. A root that is no directory is the one file.
//
// Symbolic links are not followed, so a walk ends and stays below root.
// Directories that cannot be read are left out and counted in unreadable. An
// error of fn ends the walk and is returned, except [fs.SkipAll], which ends
// it without an error. The end of ctx ends it with the context's error.
func Walk(ctx context.Context, root string, fn func(Entry) error) (unreadable int, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return 0, fmt.Errorf("search %s: %w", root, err)
	}
	if slices.Contains(splitPath(root), ".git") {
		return 0, nil
	}
	if !info.IsDir() {
		err = fn(Entry{Path: root, Rel: filepath.Base(root), DirEntry: fs.FileInfoToDirEntry(info)})
	} else {
		top, rules := rulesAbove(root)
		rel, relErr := filepath.Rel(top, root)
		if relErr != nil {
			return 0, fmt.Errorf("search %s: %w", root, relErr)
		}
		w := walker{ctx: ctx, fn: fn, unreadable: &unreadable}
		err = w.dir(root, "", splitPath(rel), rules)
	}
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return unreadable, err
}

// walker is one walk. It lives as long as the call of Walk whose ctx it holds.
type walker struct {
	ctx        context.Context
	fn         func(Entry) error
	unreadable *int
}

// dir walks one directory: rel is its path below the root, path its components
// below the top of the repository, rules what holds in it so far.
func (w walker) dir(dir, rel string, path []string, rules []rule) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		*w.unreadable++
		if len(entries) == 0 {
			return w.ctx.Err()
		}
	}
	// Copied, because siblings must not share what is appended.
	rules = slices.Concat(rules, readRules(filepath.Join(dir, ".gitignore"), path))
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		name := e.Name()
		at := slices.Concat(path, []string{name})
		if name == ".git" || ignored(rules, at, e.IsDir()) {
			continue
		}
		entry := Entry{Path: filepath.Join(dir, name), Rel: rel + name, DirEntry: e}
		if e.IsDir() {
			err = w.dir(entry.Path, entry.Rel+"/", at, rules)
		} else {
			err = w.fn(entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
