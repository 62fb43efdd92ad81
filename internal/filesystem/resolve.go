package filesystem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the symbolic links followed for one path, as kernels do.
const maxLinks = 40

// resolve returns the absolute path without symbolic links that the operating
// system would reach through path, an absolute one. What does not exist yet is
// kept as it is written. Components are taken one by one, ".." included,
// because "link/.." is the parent of the link's target, not of the link.
func resolve(path string) (string, error) {
	volume := filepath.VolumeName(path)
	root := volume + string(filepath.Separator)
	done := root
	rest := splitPath(path[len(volume):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			done = next
			continue
		case err != nil:
			return "", fmt.Errorf("resolve %s: %w", path, err)
		case info.Mode()&fs.ModeSymlink == 0:
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("resolve %s: too many symbolic links", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		if filepath.IsAbs(target) {
			done = root
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(splitPath(target), rest...)
	}
	return done, nil
}

// splitPath returns the components of a path, without empty ones and ".".
func splitPath(path string) []string {
	fields := strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	kept := fields[:0]
	for _, f := range fields {
		if f != "." {
			kept = append(kept, f)
		}
	}
	return kept
}
