package repl

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/session"
)

// job is something beside the conversation that takes its time and shows what
// it says: a shell command of the user, signing in.
type job struct {
	// title is the shell command, or says what is done.
	title  string
	shell  bool
	cancel context.CancelFunc
	output []byte
	pieces chan string
	// ended gets the result when pieces is closed.
	result jobResult
}

// jobResult says how a job ended.
type jobResult struct {
	err      error
	exitCode *int
	// choice is a model that the job set up.
	choice *ModelChoice
}

// The messages of a job.
type (
	// jobOutputMsg brings what a job said.
	jobOutputMsg struct {
		job  *job
		text string
	}
	// jobEndedMsg says that its result stands.
	jobEndedMsg struct{ job *job }
)

// startJob runs a job beside the conversation, one at a time.
func (m *Model) startJob(j *job, run func(ctx context.Context, say func(string)) jobResult) tea.Cmd {
	if m.job != nil {
		return m.notify("Another command is running; Esc stops it")
	}
	ctx, cancel := context.WithCancel(m.ctx)
	j.cancel, j.pieces = cancel, make(chan string)
	m.job = j
	return func() tea.Msg {
		go func() {
			defer close(j.pieces)
			j.result = run(ctx, func(text string) {
				select {
				case j.pieces <- text:
				case <-ctx.Done():
				}
			})
		}()
		return j.read()
	}
}

// read waits for what the job says next, and collects what follows closely.
func (j *job) read() tea.Msg {
	text, open := <-j.pieces
	if !open {
		return jobEndedMsg{job: j}
	}
	timer := time.NewTimer(coalesceTime)
	defer timer.Stop()
	for len(text) < maxLiveOutput {
		select {
		case more, open := <-j.pieces:
			if !open {
				return jobOutputMsg{job: j, text: text}
			}
			text += more
		case <-timer.C:
			return jobOutputMsg{job: j, text: text}
		}
	}
	return jobOutputMsg{job: j, text: text}
}

// maxJobOutput bounds what is kept of the output of a job, in bytes.
const maxJobOutput = 256 << 10

func (m *Model) handleJobOutput(msg jobOutputMsg) tea.Cmd {
	j := msg.job
	j.output = append(j.output, msg.text...)
	if len(j.output) > 2*maxJobOutput {
		j.output = append([]byte(nil), j.output[len(j.output)-maxJobOutput:]...)
	}
	return j.read
}

func (m *Model) handleJobEnded(msg jobEndedMsg) tea.Cmd {
	j := msg.job
	j.cancel()
	m.job = nil
	if j.shell {
		return m.shellEnded(j)
	}
	return m.accountEnded(j)
}

// jobLines draws the running job.
func (m *Model) jobLines() []string {
	if m.job == nil {
		return nil
	}
	if m.job.shell {
		return render.BashBlock(m.theme, render.Bash{Command: m.job.title, Output: string(m.job.output), Running: true, MaxLines: liveToolLines}, m.width)
	}
	return render.Notice(m.theme, m.job.title+"\n"+string(m.job.output), m.width)
}

// runShell runs a command of the user. The model never sees it.
func (m *Model) runShell(command string) tea.Cmd {
	dir, environ := m.options.Dir, m.options.Environ
	return m.startJob(&job{title: command, shell: true}, func(ctx context.Context, say func(string)) jobResult {
		return shell(ctx, command, dir, environ, say)
	})
}

// shellWait is how long output may stay open after a command ended.
const shellWait = 2 * time.Second

// shell runs a command until it ends or ctx does.
func shell(ctx context.Context, command, dir string, environ []string, say func(string)) jobResult {
	name, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		name, flag = "cmd", "/c"
	}
	c := exec.CommandContext(ctx, name, flag, command) //nolint:gosec // the user typed it
	c.Dir, c.Env, c.WaitDelay = dir, environ, shellWait
	out := &sayWriter{say: say}
	c.Stdout, c.Stderr = out, out
	endWithGroup(c)
	err := c.Run()
	out.close()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return jobResult{err: ctx.Err()}
	case errors.As(err, &exit):
		code := exit.ExitCode()
		return jobResult{exitCode: &code}
	case err != nil:
		return jobResult{err: err}
	}
	code := 0
	return jobResult{exitCode: &code}
}

// sayWriter gives what is written to a function, until it is closed: what a
// command left behind may write on after that.
type sayWriter struct {
	mu  sync.Mutex
	say func(string)
}

func (w *sayWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.say == nil {
		return 0, io.ErrClosedPipe
	}
	w.say(string(p))
	return len(p), nil
}

func (w *sayWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say = nil
}

// maxStoredOutput bounds the output of a command in the session, in bytes.
const maxStoredOutput = 32 << 10

func (m *Model) shellEnded(j *job) tea.Cmd {
	m.say(blockTool, render.BashBlock(m.theme, render.Bash{Command: j.title, Output: string(j.output), ExitCode: j.result.exitCode}, m.width))
	switch {
	case errors.Is(j.result.err, context.Canceled):
		m.warn("The command was stopped.")
	case j.result.err != nil:
		m.fail(j.result.err)
	}
	output := j.output[max(len(j.output)-maxStoredOutput, 0):]
	return m.store(session.Event{Kind: session.KindCommand, Text: j.title, Output: string(output), ExitCode: j.result.exitCode})
}
