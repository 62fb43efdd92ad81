package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// How long processes get to end before they are made to.
const (
	// termGrace is the time between the request to end and the kill.
	termGrace = 500 * time.Millisecond
	// drainGrace is the time to read what is left after the end.
	drainGrace = 2 * time.Second
	// pollEvery is the time between two looks at a group that was told to
	// end: nothing announces the end of somebody else's child.
	pollEvery = 10 * time.Millisecond
)

// process is one command of the shell with everything it starts. It leads a
// process group of its own, so that all of it can be ended together.
type process struct {
	command string
	dir     string
	timeout time.Duration
	out     *output
}

// ending says how a process ended.
type ending struct {
	// exitCode is nil when it was ended by a signal or the timeout.
	exitCode *int
	// signal names the signal that ended it, or is empty.
	signal   string
	timedOut bool
	// leftovers says that processes outlived the shell and were ended.
	leftovers bool
}

// run starts the command, copies its output and returns when the shell has
// ended and nothing of its group is left, or the context's error when that
// ended it. Processes that leave the group on purpose (setsid) are not found.
func (p process) run(ctx context.Context) (ending, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return ending{}, fmt.Errorf("start the command: %w", err)
	}
	cmd := exec.Command("bash", "-c", p.command)
	if _, err := exec.LookPath("bash"); err != nil {
		cmd = exec.Command("sh", "-c", p.command)
	}
	cmd.Dir = p.dir
	// A pager or a prompt would wait for keys that nobody presses.
	cmd.Env = append(os.Environ(), "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb")
	// One pipe for both keeps the order in which things were written.
	cmd.Stdout, cmd.Stderr = w, w
	ownGroup(cmd)
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return ending{}, fmt.Errorf("start the command: %w", err)
	}
	copied, exited := make(chan struct{}), make(chan struct{})
	go func() { defer close(copied); p.out.copyFrom(r) }()
	go func() { defer close(exited); _ = cmd.Wait() }()

	end, err := p.await(ctx, cmd, exited)
	// The shell is gone. Give what it wrote time to arrive only as long as
	// nobody else can write.
	end.leftovers = endGroup(cmd) && err == nil && !end.timedOut
	select {
	case <-copied:
	case <-time.After(drainGrace):
		// Somebody outside the group holds the pipe open.
	}
	_ = r.Close()
	<-copied
	return end, err
}

// await waits for the shell to end, by itself or because of the context or the
// timeout.
func (p process) await(ctx context.Context, cmd *exec.Cmd, exited <-chan struct{}) (ending, error) {
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	var end ending
	var cause error
	select {
	case <-exited:
	case <-ctx.Done():
		cause = ctx.Err()
	case <-timer.C:
		end.timedOut = true
	}
	if cause != nil || end.timedOut {
		signalGroup(cmd, polite)
		select {
		case <-exited:
		case <-time.After(termGrace):
			signalGroup(cmd, forced)
			<-exited
		}
		return end, cause
	}
	state := cmd.ProcessState
	if state == nil {
		return end, errors.New("the command ended and nobody knows how")
	}
	if code := state.ExitCode(); code >= 0 {
		end.exitCode = &code
	} else {
		end.signal = state.String()
	}
	return end, nil
}

// endGroup ends what is left of the group after its leader, and reports
// whether there was anything.
func endGroup(cmd *exec.Cmd) bool {
	if !groupLives(cmd) {
		return false
	}
	signalGroup(cmd, polite)
	deadline := time.After(termGrace)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for groupLives(cmd) {
		select {
		case <-tick.C:
		case <-deadline:
			signalGroup(cmd, forced)
			return true
		}
	}
	return true
}

// urgency is how a process is told to end.
type urgency int

const (
	polite urgency = iota
	forced
)
