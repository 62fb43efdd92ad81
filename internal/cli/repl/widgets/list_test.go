package widgets_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
)

func commands() []widgets.Item {
	return []widgets.Item{{Text: "/clear", Detail: "start anew"}, {Text: "/compact", Detail: "make room"}, {Text: "/context", Detail: "what fills it"}, {Text: "/exit", Detail: "quit"}}
}

func TestCompleterOffersWhatTheQueryFinds(t *testing.T) {
	c := widgets.NewCompleter(render.Dumb(), 2)
	if c.Visible() || c.View(40) != nil {
		t.Error("a closed completer is visible")
	}
	c.Open(commands(), "")
	c.SetQuery("co")
	if diff := cmp.Diff([]string{"> /compact  make room", "  /context  what fills it"}, c.View(40)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Update(press("down"))
	c.Update(press("down"))
	want := widgets.CompleterEvent{Kind: widgets.CompleterAccepted, Item: commands()[2]}
	if diff := cmp.Diff(want, c.Update(press("tab"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Visible() {
		t.Error("it is still open")
	}
}

func TestCompleterLeavesKeysAloneThatAreNotItsOwn(t *testing.T) {
	c := widgets.NewCompleter(render.Dumb(), 5)
	c.Open(commands(), "zzz")
	if got := c.Update(press("enter")); got.Kind != widgets.CompleterIgnored {
		t.Errorf("nothing to offer: %+v", got)
	}
	c.SetQuery("")
	if got := c.Update(press("x")); got.Kind != widgets.CompleterIgnored {
		t.Errorf("a letter: %+v", got)
	}
	if got := c.Update(press("esc")); got.Kind != widgets.CompleterClosed || c.Visible() {
		t.Errorf("esc: %+v, visible %v", got, c.Visible())
	}
}

func TestMatchesStandOut(t *testing.T) {
	c := widgets.NewCompleter(render.NoColor(), 5)
	c.Open([]widgets.Item{{Text: "日本x\x1b[2J"}}, "本x")
	if diff := cmp.Diff([]string{"\x1b[1m❯\x1b[m \x1b[1m日\x1b[m\x1b[4m本x\x1b[m"}, c.View(40)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func sessions(n int) []widgets.Item {
	items := make([]widgets.Item, n)
	for i := range items {
		items[i] = widgets.Item{Text: fmt.Sprintf("session %d about topic %d", i, i%97), Detail: "2d ago", Value: fmt.Sprint(i)}
	}
	return items
}

func TestPickerView(t *testing.T) {
	p := widgets.NewPicker(render.Dumb(), "Resume a session", sessions(200))
	p.Select("7")
	want := []string{
		"Resume a session  200 of 200", ">  ", "  session 6 about topic 6  2d ago", "> session 7 about topic 7  2d ago", "type to search | enter choose | esc cancel",
	}
	if diff := cmp.Diff(want, p.View(60, 5, render.CardHint{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, r := range "zzz" {
		p.Update(press(string(r)))
	}
	if view := strings.Join(p.View(60, 5, render.CardHint{}), "\n"); !strings.Contains(view, "0 of 200") || !strings.Contains(view, "nothing found") {
		t.Errorf("view:\n%s", view)
	}
}

func TestPickerChoosesWhatWasSearched(t *testing.T) {
	p := widgets.NewPicker(render.Dumb(), "Sessions", sessions(50))
	for _, key := range []string{"4", "x", "backspace", "2"} {
		p.Update(press(key))
	}
	if got := p.Update(press("enter")); got.Kind != widgets.PickerChosen || got.Item.Value != "42" {
		t.Errorf("got %+v", got)
	}
	p.Update(press("ctrl+u"))
	p.View(40, 13, render.CardHint{})
	for _, key := range []string{"end", "pgup", "up", "down", "home", "pgdown"} {
		p.Update(press(key))
	}
	if item, ok := p.Selected(); !ok || item.Value != "10" {
		t.Errorf("selected %+v, %v", item, ok)
	}
	if got := p.Update(press("esc")); got.Kind != widgets.PickerCancelled {
		t.Errorf("esc: %+v", got)
	}
}

func TestPickerFitsAnySize(t *testing.T) {
	items := append(sessions(30), widgets.Item{Text: "日本語👩‍👩‍👧\n\x1b[2J", Detail: strings.Repeat("d", 200)})
	for width := 1; width <= 60; width++ {
		p := widgets.NewPicker(render.Dark(), "A long title of a picker", items)
		p.Update(press("end"))
		for height := 1; height < 8; height++ {
			view := p.View(width, height, render.CardHint{})
			if len(view) > height {
				t.Fatalf("%d lines at height %d", len(view), height)
			}
			for _, line := range view {
				if render.Width(line) > width {
					t.Fatalf("width %d: %q", width, line)
				}
			}
		}
	}
}

func BenchmarkPickerKey(b *testing.B) {
	p := widgets.NewPicker(render.Dark(), "Sessions", sessions(10_000))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Update(press([]string{"t", "backspace"}[i%2]))
		p.View(80, 20, render.CardHint{})
	}
}

func BenchmarkEditorKey(b *testing.B) {
	e := newEditor(strings.Repeat("some words of a long prompt\n", 200) + "|")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.Update(press([]string{"t", "backspace"}[i%2]))
		e.View()
		e.Cursor()
	}
}

func TestSpinnerFollowsTheTimeAndForgetsOldTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := widgets.NewSpinner([]string{"a", "b", "c"})
		if s.Frame() != "" || s.Running() {
			t.Error("a new spinner runs")
		}
		start := time.Now()
		first := tick(t, s.Start(start))
		next := s.Update(first)
		if next == nil || s.Frame() != "b" || s.Elapsed() != 80*time.Millisecond {
			t.Errorf("frame %q after %v", s.Frame(), s.Elapsed())
		}
		s.Start(start)
		if s.Update(first) != nil || s.Elapsed() != 0 {
			t.Error("a tick of the run before was taken")
		}
		late := tick(t, next)
		s.Stop()
		if s.Update(late) != nil || s.Frame() != "" {
			t.Error("a stopped spinner goes on")
		}
	})
}

func tick(t *testing.T, cmd tea.Cmd) widgets.SpinnerTickMsg {
	t.Helper()
	msg, ok := cmd().(widgets.SpinnerTickMsg)
	if !ok {
		t.Fatalf("the command sends %T", msg)
	}
	return msg
}
