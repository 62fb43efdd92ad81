package repl

import "os/exec"

// endWithGroup leaves it to the system to end what a command started.
func endWithGroup(*exec.Cmd) {}
