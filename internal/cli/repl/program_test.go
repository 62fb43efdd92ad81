package repl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"

	"keen/internal/session"
)

// terminal runs a program on an emulated terminal with the real clock.
type terminal struct {
	t      *testing.T
	mu     sync.Mutex // held while the screen is written, and while it is read as a whole
	screen *vt.SafeEmulator
	input  *keyboard
	client *playedClient
	done   chan error
}

func newTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	store, err := session.NewStore(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, screen: vt.NewSafeEmulator(width, height), client: &playedClient{}, done: make(chan error, 1)}
	x.input = &keyboard{typed: make(chan []byte, 1<<12)}
	m := New(Options{
		NewClient:   func(context.Context, ModelChoice) (Client, error) { return x.client, nil },
		NewRegistry: noTools, NewState: newState,
		Sessions: StoredSessions{Store: store, Version: "test"}, Config: &memoryConfig{choice: ModelChoice{Name: "acme/one"}},
		Dir: "/home/ada/project", Home: "/home/ada", Version: "1.2.3",
	})
	replies := make(chan struct{})
	go func() { // The emulator answers questions of the program.
		defer close(replies)
		_, _ = io.Copy(x.input, x.screen)
	}()
	output, flush := joined(lineDiscipline{x})
	program := tea.NewProgram(m, tea.WithInput(x.input), tea.WithOutput(output), tea.WithWindowSize(width, height),
		tea.WithoutSignals(), tea.WithFPS(framesPerSecond), tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}))
	go func() {
		_, err := program.Run()
		flush()
		m.stop()
		x.done <- err
	}()
	t.Cleanup(func() {
		program.Quit()
		if err := <-x.done; err != nil {
			t.Error(err)
		}
		x.client.abandon()
		_ = x.screen.InputPipe().(io.Closer).Close() // Close of the emulator itself races with its readers.
		<-replies
		close(x.input.typed)
		if err := m.journal.close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// keyboard is an input that takes what is typed without waiting for a reader,
// as a terminal does.
type keyboard struct {
	typed chan []byte
	rest  []byte
}

func (k *keyboard) Write(p []byte) (int, error) {
	k.typed <- append([]byte(nil), p...)
	return len(p), nil
}

func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		next, open := <-k.typed
		if !open {
			return 0, io.EOF
		}
		k.rest = next
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// lineDiscipline turns a line feed into a line break, as a terminal does that is
// not told otherwise.
type lineDiscipline struct{ x *terminal }

func (w lineDiscipline) Write(p []byte) (int, error) {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	_, err := io.WriteString(w.x.screen, strings.ReplaceAll(strings.ReplaceAll(string(p), "\r\n", "\n"), "\n", "\r\n"))
	return len(p), err
}

// text returns the whole terminal: what scrolled away and the screen.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b strings.Builder
	for i := range x.screen.ScrollbackLen() {
		for col := range x.screen.Width() {
			cell := x.screen.ScrollbackCellAt(col, i)
			if cell == nil || cell.Content == "" {
				b.WriteByte(' ')
			} else {
				b.WriteString(cell.Content)
			}
		}
		b.WriteByte('\n')
	}
	return b.String() + x.screen.String()
}

func (x *terminal) until(what string, ok func(text string) bool) string {
	x.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		text := x.text()
		if ok(text) {
			return text
		}
		select {
		case <-deadline:
			x.t.Fatalf("waited in vain for %s:\n%s", what, text)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// numbers returns the numbers of the numbered lines of a text, in order.
func numbers(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "line number "); ok {
			found = append(found, n)
		}
	}
	return found
}

func TestEveryLineOfALongAnswerStandsInTheTerminalOnceAndInOrder(t *testing.T) {
	const lines = 80
	var want []string
	for i := range lines {
		want = append(want, fmt.Sprint(i))
	}
	for name, burst := range map[string]int{"bit by bit": 1, "all at once": lines} {
		for _, size := range [][2]int{{60, 20}, {40, 7}, {30, 3}} {
			t.Run(fmt.Sprintf("%s %dx%d", name, size[0], size[1]), func(t *testing.T) {
				x := newTerminal(t, size[0], size[1])
				_, _ = io.WriteString(x.input, "count\r")
				x.until("a turn", func(string) bool { return len(x.client.all()) > 0 })
				turn := x.client.all()[0]
				turn.queue <- step(1)
				for i := range lines {
					turn.queue <- chunk(fmt.Sprintf("line number %d\n\n", i))
					if (i+1)%burst == 0 && i%5 == 0 {
						x.until("the line", func(text string) bool { return len(numbers(text)) > 0 })
					}
				}
				turn.queue <- done()
				text := x.until("the end", func(text string) bool {
					return len(numbers(text)) >= lines && !strings.Contains(text, "Working")
				})
				if diff := cmp.Diff(want, numbers(text)); diff != "" {
					t.Errorf("numbers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRunStoresWhatWasDoneWhenTheProcessEnds(t *testing.T) {
	store, err := session.NewStore(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client := &playedClient{}
	defer client.abandon()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ran := make(chan error, 1)
	started := client.starts()
	typed := &keyboard{typed: make(chan []byte)}
	defer close(typed.typed)
	go func() {
		ran <- Run(ctx, Options{
			NewClient:   func(context.Context, ModelChoice) (Client, error) { return client, nil },
			NewRegistry: noTools, NewState: newState, Sessions: StoredSessions{Store: store},
			Config: &memoryConfig{choice: ModelChoice{Name: "acme/one"}}, Prompt: "do it",
			Environ: []string{"TERM=xterm"},
		}, typed, io.Discard)
	}()
	<-started
	end()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	info, err := store.Latest()
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := store.Load(info.ID)
	if err != nil {
		t.Fatal(err)
	}
	if last := events[len(events)-1]; last.Outcome != session.OutcomeInterrupted {
		t.Errorf("the last event is %+v", last)
	}
}
