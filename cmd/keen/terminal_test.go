//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"keen/internal/session"
	"keen/internal/simulator"
)

// waitLimit is how long a test waits for what must come. It is long because a
// machine may be busy; a test that passes does not wait for it.
const waitLimit = 90 * time.Second

// home is a user's machine: a home directory of its own with a project in it.
type home struct {
	t *testing.T
	// dir is the home directory, work the project, tmp for temporary files.
	dir, work, tmp string
	// environ is what the environment holds beside the directories.
	environ []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	keen, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, dir: t.TempDir(), tmp: t.TempDir()}
	h.work = filepath.Join(h.dir, "project")
	// The test binary acts as keen when it is called so.
	if err := errors.Join(os.Mkdir(h.work, 0o700), os.Symlink(keen, filepath.Join(h.dir, "keen"))); err != nil {
		t.Fatal(err)
	}
	return h
}

// write writes a file of the project.
func (h *home) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.work, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// read returns a file of the project, and whether it is there.
func (h *home) read(name string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(h.work, name))
	return string(text), err == nil
}

// events returns what the only session holds.
func (h *home) events() []session.Event {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "state", "keen", "sessions", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		h.t.Fatalf("%d session files: %v", len(files), err)
	}
	events, _, err := session.Load(files[0])
	if err != nil {
		h.t.Fatal(err)
	}
	return events
}

// checkpoints counts the compactions that the only session holds.
func (h *home) checkpoints() int {
	h.t.Helper()
	n := 0
	for _, e := range h.events() {
		if e.Kind == session.KindCompactionApplied {
			n++
		}
	}
	return n
}

// windowSize is the size of a terminal in cells.
type windowSize struct{ width, height int }

func (s windowSize) pty() *pty.Winsize {
	return &pty.Winsize{Cols: uint16(s.width), Rows: uint16(s.height)} //nolint:gosec // sizes of tests
}

// terminal is an emulated terminal on a real pty, with keen in it.
type terminal struct {
	t   *testing.T
	pty *os.File
	run *exec.Cmd
	// changed says that the screen may have changed since it was last read;
	// ended is closed when the program has ended and all it wrote is shown.
	changed chan struct{}
	ended   chan struct{}

	// mu keeps pictures whole and guards what follows.
	mu     sync.Mutex
	screen *vt.SafeEmulator
	// forbidden must never be seen; seen is what of it was.
	forbidden, seen []string
}

// start starts keen in a terminal.
func (h *home) start(size windowSize, args ...string) *terminal {
	h.t.Helper()
	run := exec.CommandContext(h.t.Context(), filepath.Join(h.dir, "keen"), args...)
	run.Dir = h.work
	run.Env = append([]string{
		"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + h.tmp, "TERM=xterm-256color", "COLORTERM=truecolor",
		"XDG_STATE_HOME=" + h.dir + "/state", "XDG_CONFIG_HOME=" + h.dir + "/config", "XDG_CACHE_HOME=" + h.dir + "/cache",
		"AWS_EC2_METADATA_DISABLED=true",
	}, h.environ...)
	file, err := pty.StartWithSize(run, size.pty())
	if err != nil {
		h.t.Fatal(err)
	}
	x := &terminal{
		t: h.t, pty: file, run: run, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		screen: vt.NewSafeEmulator(size.width, size.height),
	}
	replied := make(chan struct{})
	go func() { // The terminal answers questions, such as for its colours.
		defer close(replied)
		_, _ = io.Copy(file, x.screen)
	}()
	go x.show()
	h.t.Cleanup(func() {
		_ = run.Process.Kill() // It has ended unless the test failed.
		<-x.ended
		_ = x.screen.InputPipe().(io.Closer).Close() // Close of the emulator itself races with its readers.
		<-replied
		_ = file.Close()
	})
	return x
}

// converse starts the interactive program with the model of a server, and
// waits until it can be typed to.
func (h *home) converse(server *simulator.Server, size windowSize, args ...string) *terminal {
	h.t.Helper()
	x := h.start(size, append([]string{
		"--provider", "openai-compatible", "--model", "scripted", "--base-url", server.URL() + "/v1", "--context-window", "32768",
	}, args...)...)
	x.shows("openai-compatible/scripted")
	return x
}

// show shows what the program writes until it has ended.
func (x *terminal) show() {
	defer close(x.ended)
	buffer := make([]byte, 32<<10)
	for {
		n, err := x.pty.Read(buffer)
		x.write(buffer[:n])
		if err != nil { // The other end is closed.
			_ = x.run.Wait() // The exit code is looked at by who waits for it.
			return
		}
	}
}

func (x *terminal) write(p []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, _ = x.screen.Write(p) // It takes everything.
	if len(x.forbidden) > 0 {
		text := x.screen.String()
		for _, f := range x.forbidden {
			if strings.Contains(text, f) && !slices.Contains(x.seen, f) {
				x.seen = append(x.seen, f)
			}
		}
	}
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// keys types.
func (x *terminal) keys(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.pty, keys); err != nil {
		x.t.Fatal(err)
	}
}

// Keys that are not written as themselves.
const (
	escKey   = "\x1b"
	ctrlC    = "\x03"
	enterKey = "\r"
	downKey  = "\x1b[B"
	tabKey   = "\t"
	ctrlR    = "\x12"
)

// resize changes the size of the terminal.
func (x *terminal) resize(size windowSize) {
	x.t.Helper()
	x.mu.Lock()
	x.screen.Resize(size.width, size.height)
	x.mu.Unlock()
	if err := pty.Setsize(x.pty, size.pty()); err != nil {
		x.t.Fatal(err)
	}
}

// visible returns the screen.
func (x *terminal) visible() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// text returns everything in the terminal: what scrolled away, and the screen.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b strings.Builder
	for row := range x.screen.ScrollbackLen() {
		var line strings.Builder
		for col := range x.screen.Width() {
			if cell := x.screen.ScrollbackCellAt(col, row); cell != nil && cell.Content != "" {
				line.WriteString(cell.Content)
			} else {
				line.WriteByte(' ')
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String() + x.screen.String()
}

// until waits until the terminal is as it shall be.
func (x *terminal) until(what string, ok func() bool) {
	x.t.Helper()
	deadline := time.After(waitLimit)
	for {
		if ok() {
			return
		}
		select {
		case <-x.changed:
		case <-x.ended:
			if !ok() {
				x.t.Fatalf("the program ended without %s:\n%s", what, x.text())
			}
			return
		case <-deadline:
			x.t.Fatalf("waited in vain for %s:\n%s", what, x.text())
		}
	}
}

// shows waits until all of the texts are on the screen.
func (x *terminal) shows(texts ...string) {
	x.t.Helper()
	x.until(strings.Join(texts, " and "), func() bool {
		screen := x.visible()
		return !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(screen, s) })
	})
}

// hides waits until none of the texts is on the screen.
func (x *terminal) hides(texts ...string) {
	x.t.Helper()
	x.until("no "+strings.Join(texts, " nor "), func() bool {
		screen := x.visible()
		return !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(screen, s) })
	})
}

// idle waits until nothing goes on any more: nothing is offered to be stopped.
func (x *terminal) idle() {
	x.t.Helper()
	x.hides("esc to ", "waiting for you", "Interrupting")
}

// allow answers a question with its first answer, as soon as it takes one.
func (x *terminal) allow() {
	x.t.Helper()
	x.shows("Allow once", "enter confirm")
	x.keys(enterKey)
}

// never lets the test fail if a text is ever on the screen from now on.
func (x *terminal) never(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forbidden = append(x.forbidden, text)
}

// exits waits for the end of the program and checks that it was a good one.
func (x *terminal) exits() {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(waitLimit):
		x.t.Fatalf("the program does not end:\n%s", x.text())
	}
	if code := x.run.ProcessState.ExitCode(); code != 0 {
		x.t.Errorf("exit code %d:\n%s", code, x.text())
	}
	for _, s := range x.seen {
		x.t.Errorf("%q was on the screen", s)
	}
}

// leave leaves the program.
func (x *terminal) leave() {
	x.t.Helper()
	x.keys("/exit\r")
	x.exits()
}

// serve starts a scripted model with a window of 32k tokens.
func serve(t *testing.T, script simulator.Script) *simulator.Server {
	t.Helper()
	server, err := simulator.New(simulator.Options{Window: 32768, Script: script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// settled returns the requests so far, when what became of each is known.
func settled(t *testing.T, server *simulator.Server) simulator.Records {
	t.Helper()
	if err := server.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server.Records()
}

// gate is a place where a scripted answer waits for the test.
type gate struct{ reached, release chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

// fault stalls an answer at the gate, after a number of its events.
func (g gate) fault(after int) *simulator.Fault {
	return simulator.Stall(after, g.release, func() { close(g.reached) })
}

// wait waits until an answer stands at the gate.
func (g gate) wait(x *terminal) {
	x.t.Helper()
	select {
	case <-g.reached:
	case <-time.After(waitLimit):
		x.t.Fatalf("no answer came to the gate:\n%s", x.text())
	}
}

func (g gate) open() { close(g.release) }
