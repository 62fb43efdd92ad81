package session

import (
	"errors"
	"fmt"
	"os"
)

// The lock is one of the operating system on the session file itself: it ends
// with the process, however that ends, so no stale lock can be left behind.
// Reading needs none.

// openLocked opens an existing session for reading and writing and locks it.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Between opening and locking somebody may have deleted the file: what
	// is locked now would be gone with the last descriptor.
	if !isFileAt(f, path) {
		return nil, errors.Join(ErrNotFound, unlock(f), f.Close())
	}
	return f, nil
}

func isFileAt(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(path)
	return err == nil && os.SameFile(ours, theirs)
}

// lockedFile gives its lock back when it is closed, although closing alone
// would do: a child process that is just being started holds a copy of the
// descriptor, and with it the lock, until it runs.
type lockedFile struct {
	*os.File
}

func (f *lockedFile) Close() error {
	return errors.Join(unlock(f.File), f.File.Close())
}

// errNoLocks explains a file system that cannot lock.
func errNoLocks(err error) error {
	return fmt.Errorf("lock: the file system of the state directory has no file locks, set XDG_STATE_HOME to a directory on one that has: %w", err)
}
