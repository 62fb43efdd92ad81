//go:build !windows

package repl

import (
	"os/exec"
	"syscall"
)

// endWithGroup makes a cancelled command end with everything it started.
func endWithGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
