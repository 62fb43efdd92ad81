package session

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// Locks keep others from reading the locked bytes here, so the byte that is
// locked lies far behind the end of any session.
func lockRange() *windows.Overlapped {
	return &windows.Overlapped{OffsetHigh: math.MaxInt32}
}

// tryLock takes the exclusive lock on f, or returns an error at once:
// [ErrLocked] when somebody else has it.
func tryLock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, lockRange())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return ErrLocked
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED):
		return errNoLocks(err)
	}
	return fmt.Errorf("lock: %w", err)
}

func unlock(f *os.File) error {
	if err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockRange()); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// removeLocked deletes a file that is open and locked, and closes it. An open
// file cannot be deleted here, so it is closed first.
func removeLocked(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Remove(path)
}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
