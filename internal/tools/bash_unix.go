//go:build unix

package tools

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(cmd *exec.Cmd, u urgency) {
	signal := syscall.SIGTERM
	if u == forced {
		signal = syscall.SIGKILL
	}
	// An error means that nobody is left.
	_ = syscall.Kill(-cmd.Process.Pid, signal)
}

// groupLives reports whether a process of the group still runs.
func groupLives(cmd *exec.Cmd) bool {
	if errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) {
		return false
	}
	// In a container nobody may collect orphans that have ended. The kernel
	// counts them to the group for ever, so their state is looked at.
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	return slices.ContainsFunc(stats, func(file string) bool { return runsIn(file, cmd.Process.Pid) })
}

// runsIn reports whether the process that a stat file of /proc describes runs
// in a group. The file says "pid (name) state parent group ...".
func runsIn(file string, group int) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false // It has ended since.
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X"
}
