//go:build unix

package tools

import (
	"errors"
	"os/exec"
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

func groupLives(cmd *exec.Cmd) bool {
	return !errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH)
}
