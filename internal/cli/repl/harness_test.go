package repl

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/session"
	"keen/internal/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program runs a Model as Bubble Tea would, but step by step and with the
// bubble's clock: a message is taken in only while the test waits.
type program struct {
	t       *testing.T
	m       *Model
	client  *playedClient
	options *Options
	config  *memoryConfig
	root    string

	msgs    chan tea.Msg
	over    chan struct{}
	quit    bool
	copied  string
	printed []string
	running sync.WaitGroup
}

// play runs a test with a program in a bubble, on a terminal of 80 by 24. The
// options may be changed before it starts.
func play(t *testing.T, test func(p *program), change ...func(o *Options)) {
	t.Helper()
	root, dir := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := session.NewStore(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		p := &program{
			t: t, client: &playedClient{}, config: &memoryConfig{choice: ModelChoice{Name: "acme/one"}}, root: store.Dir(),
			msgs: make(chan tea.Msg, 4096), over: make(chan struct{}),
		}
		p.options = &Options{
			NewClient:   func(context.Context, ModelChoice) (Client, error) { return p.client, nil },
			NewRegistry: noTools,
			NewState:    newState,
			Sessions:    StoredSessions{Store: store, Version: "test"}, Config: p.config,
			Dir: "/home/ada/project", Home: "/home/ada", Version: "1.2.3", Theme: "no-color",
		}
		for _, c := range change {
			c(p.options)
		}
		p.m = New(*p.options)
		p.run(p.m.Init())
		p.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		p.pass(2 * paintTime)
		test(p)
		p.m.stop()
		p.m.stream.release()
		p.m.compaction.release()
		close(p.over)
		p.client.abandon()
		p.running.Wait()
		if err := p.m.journal.close(); err != nil {
			t.Error(err)
		}
	})
}

func noTools(permission.Approver) *tools.Registry { return tools.NewRegistry() }

func newState(history []llm.Message) *appstate.AppState { return appstate.New("system", history) }

// run runs a command as Bubble Tea does.
func (p *program) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	p.running.Go(func() { p.deliver(cmd()) })
}

func (p *program) deliver(msg tea.Msg) {
	switch v := reflect.ValueOf(msg); {
	case msg == nil:
	case v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]():
		_, batch := msg.(tea.BatchMsg)
		for i := range v.Len() {
			cmd := v.Index(i).Interface().(tea.Cmd)
			if batch {
				p.run(cmd)
			} else if cmd != nil {
				p.deliver(cmd())
			}
		}
	default:
		select {
		case p.msgs <- msg:
		case <-p.over:
		}
	}
}

// settle takes in messages until nothing happens any more but the passing of
// time.
func (p *program) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-p.msgs:
			p.take(msg)
		default:
			return
		}
	}
}

func (p *program) take(msg tea.Msg) {
	switch fmt.Sprintf("%T", msg) {
	case "tea.QuitMsg":
		p.quit = true
		return
	case "tea.printLineMessage":
		p.printed = append(p.printed, strings.Split(reflect.ValueOf(msg).Field(0).String(), "\n")...)
	case "tea.setClipboardMsg":
		p.copied = reflect.ValueOf(msg).String()
	}
	_, cmd := p.m.Update(msg)
	p.run(cmd)
}

func (p *program) send(msgs ...tea.Msg) {
	for _, msg := range msgs {
		p.settle()
		p.take(msg)
	}
	p.settle()
}

// pass lets time go by.
func (p *program) pass(d time.Duration) {
	for ; d > 0; d -= 20 * time.Millisecond {
		time.Sleep(min(d, 20*time.Millisecond))
		p.settle()
	}
}

// key presses keys: names such as "esc", or text.
func (p *program) key(names ...string) {
	for _, name := range names {
		p.send(keyPress(name))
	}
}

func keyPress(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"esc": tea.KeyEscape, "enter": tea.KeyEnter, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab, "backspace": tea.KeyBackspace,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
	}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// enter types a line and sends it.
func (p *program) enter(text string) {
	for _, r := range text {
		p.key(string(r))
	}
	p.key("enter")
}

// screen returns the picture without styles, spaces at the ends of lines and
// empty lines at its ends.
func (p *program) screen() string {
	var lines []string
	for line := range strings.SplitSeq(ansi.Strip(p.m.View().Content), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// everything returns what was printed and the picture.
func (p *program) everything() string {
	return ansi.Strip(strings.Join(p.printed, "\n")) + "\n" + p.screen()
}

func (p *program) sees(text string) {
	p.t.Helper()
	if !strings.Contains(p.everything(), text) {
		p.t.Errorf("%q is not on the screen:\n%s", text, p.screen())
	}
}

func (p *program) seesNot(text string) {
	p.t.Helper()
	if strings.Contains(p.everything(), text) {
		p.t.Errorf("%q is on the screen:\n%s", text, p.screen())
	}
}

// idle fails the test unless the program is as it is without a turn.
func (p *program) idle() {
	p.t.Helper()
	m := p.m
	if m.busy() || m.stream.turn != nil || m.stream.cancel != nil || m.compaction.mode != compactionNone || m.compaction.cancel != nil ||
		m.loading.text != "" || m.spinner.Running() || len(m.permissionCards()) > 0 || m.focus.onCard {
		p.t.Errorf("the program is not idle: %+v %+v %q", m.stream, m.compaction, m.loading.text)
	}
}

// stored returns the events of the session.
func (p *program) stored() []session.Event {
	p.t.Helper()
	path := p.m.journal.path()
	if path == "" {
		return nil
	}
	events, _, err := session.Load(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return events
}

// sessionFiles counts the sessions on the disk.
func (p *program) sessionFiles() int {
	files, err := filepath.Glob(filepath.Join(p.root, "*.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(files)
}

// prompts returns the prompts that were sent to the model, one a turn.
func (p *program) prompts() []string {
	var prompts []string
	for _, t := range p.client.all() {
		prompts = append(prompts, t.request[len(t.request)-1].Content)
	}
	return prompts
}

// playedClient is a client whose turns are played by the test. A turn that is
// cancelled ends as the real loop ends it, unless it is stubborn.
type playedClient struct {
	mu    sync.Mutex
	turns []*playedTurn
	over  chan struct{}
	// first is closed when a turn starts.
	first chan struct{}
	// compact plays the requests of manual compactions.
	compact  func(ctx context.Context, request []llm.Message, emit func(llm.StreamEvent)) error
	stubborn bool
	refuse   error
	budget   int
}

type playedTurn struct {
	request []llm.Message
	queue   chan llm.StreamEvent
	ctx     context.Context
}

func (c *playedClient) all() []*playedTurn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.turns)
}

// starts returns a channel that is closed when the first turn starts. It is
// asked for before that.
func (c *playedClient) starts() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = make(chan struct{})
	return c.first
}

func (c *playedClient) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		close(c.over)
	}
}

func (c *playedClient) CompactionBudget() int {
	if c.budget > 0 {
		return c.budget
	}
	return 100_000
}

func (c *playedClient) Sizes() llm.Sizes { return llm.Sizes{Window: 2000, Output: 500, Budget: 1000} }

func (c *playedClient) StreamChat(ctx context.Context, request []llm.Message, _ *tools.Registry, o llm.StreamOptions) (<-chan llm.StreamEvent, error) {
	if c.refuse != nil {
		return nil, c.refuse
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = make(chan struct{})
	}
	out, over := make(chan llm.StreamEvent), c.over
	forward := func(e llm.StreamEvent) bool {
		select {
		case out <- e:
			return true
		case <-over:
			return false
		}
	}
	if o.OneShot {
		go func() {
			defer close(out)
			end := llm.StreamEvent{Type: llm.StreamEventTypeDone, StopReason: llm.StopEnd}
			if err := c.compact(ctx, request, func(e llm.StreamEvent) { forward(e) }); err != nil {
				end = llm.StreamEvent{Type: llm.StreamEventTypeError, Err: err}
			}
			forward(end)
		}()
		return out, nil
	}
	turn := &playedTurn{request: llm.CloneMessages(request), queue: make(chan llm.StreamEvent, 1<<16), ctx: ctx}
	if c.turns = append(c.turns, turn); len(c.turns) == 1 && c.first != nil {
		close(c.first)
	}
	stubborn := c.stubborn
	go func() {
		defer close(out)
		cancelled := ctx.Done()
		if stubborn {
			cancelled = nil
		}
		for {
			select {
			case e, open := <-turn.queue:
				if !open || !forward(e) || e.Terminal() {
					return
				}
			case <-cancelled:
				forward(llm.StreamEvent{Type: llm.StreamEventTypeIncomplete, Err: fmt.Errorf("turn interrupted: %w", ctx.Err())})
				return
			case <-over:
				return
			}
		}
	}()
	return out, nil
}

// does plays events of the running turn.
func (p *program) does(events ...llm.StreamEvent) {
	p.t.Helper()
	p.settle()
	turns := p.client.all()
	if len(turns) == 0 {
		p.t.Fatal("no turn was started")
	}
	for _, e := range events {
		turns[len(turns)-1].queue <- e
	}
	p.settle()
	p.pass(40 * time.Millisecond) // A picture.
}

// breaksOff closes the stream of the running turn without a terminal event.
func (p *program) breaksOff() {
	turns := p.client.all()
	close(turns[len(turns)-1].queue)
	p.settle()
}

// started is a started event whose cancel function reports how often it was
// called.
func started(calls *int) llm.StreamEvent {
	return llm.StreamEvent{Type: llm.StreamEventTypeAutoCompactionStarted, AutoCompaction: &llm.AutoCompactionEvent{Cancel: func() { *calls++ }}}
}

// memoryConfig is a configuration in memory.
type memoryConfig struct {
	choice    ModelChoice
	reasoning render.ReasoningView
	fail      error
}

func (c *memoryConfig) Choice() ModelChoice { return c.choice }

func (c *memoryConfig) SetChoice(choice ModelChoice) error {
	c.choice = choice
	return c.fail
}

func (c *memoryConfig) Reasoning() render.ReasoningView { return c.reasoning }

func (c *memoryConfig) SetReasoning(v render.ReasoningView) error {
	c.reasoning = v
	return c.fail
}

// brokenSessions are sessions whose logs fail from their n-th write on.
type brokenSessions struct {
	Sessions
	after int
	err   error
}

func (s brokenSessions) Create() (Log, error) {
	log, err := s.Sessions.Create()
	return &brokenLog{Log: log, left: s.after, err: s.err}, err
}

type brokenLog struct {
	Log
	left int
	err  error
}

func (l *brokenLog) Append(events ...session.Event) error {
	if l.left--; l.left < 0 {
		return l.err
	}
	return l.Log.Append(events...)
}

// golden compares a picture with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("KEEN_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("the picture %s is\n%s\nwant\n%s", name, got, want)
	}
}

func bashCall(id, command string) tools.Call {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return tools.Call{ID: id, Name: "bash", Input: input}
}
