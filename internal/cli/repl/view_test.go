package repl

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"keen/internal/llm"
)

func TestPictures(t *testing.T) {
	pictures := map[string]func(p *program){
		"start": func(p *program) { p.pass(time.Second) },
		"turn": func(p *program) {
			p.working()
			p.does(llm.StreamEvent{Type: llm.StreamEventTypeToolStarted, Tool: &llm.ToolEvent{Call: bashCall("2", "go test ./...")}})
			p.does(llm.StreamEvent{Type: llm.StreamEventTypeToolOutput, Tool: &llm.ToolEvent{Call: bashCall("2", "go test ./..."), Output: "ok  keen/internal/llm\n"}})
			p.enter("and then the linter")
		},
		"compacting": func(p *program) {
			p.working()
			calls := 0
			p.does(started(&calls))
			p.key("h", "i")
		},
		"context": func(p *program) {
			p.working()
			p.does(done())
			p.enter("/context")
		},
		"tiny": func(p *program) {
			p.send(tea.WindowSizeMsg{Width: 20, Height: 6})
			p.working()
		},
	}
	for name, show := range pictures {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				show(p)
				golden(t, name, withoutSpinner(p.screen()))
			})
		})
	}
}

func TestPictureOfAPermissionCard(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make install"))
		golden(t, "card", withoutSpinner(p.screen()))
	}, func(o *Options) { o.AllowProject = func(string) error { return nil } })
}

// pictureFits fails the test when the picture is larger than the terminal.
func (p *program) pictureFits(width, height int) {
	p.t.Helper()
	lines := strings.Split(p.m.View().Content, "\n")
	if len(lines) > height {
		p.t.Errorf("%d lines on a terminal of %dx%d", len(lines), width, height)
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w > width {
			p.t.Errorf("a line of %d cells on a terminal of %dx%d: %q", w, width, height, line)
		}
	}
	if c := p.m.View().Cursor; c != nil && (c.X >= width || c.Y >= len(lines)) {
		p.t.Errorf("the cursor is at %d,%d on a terminal of %dx%d", c.X, c.Y, width, height)
	}
}

func TestPicturesFitEveryTerminal(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 2}, {5, 3}, {10, 4}, {20, 5}, {33, 7}, {200, 60}} {
		playAsking(t, func(p *program, a *asker) {
			p.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			p.does(chunk("宽字符 and a long line of text with 👩‍👩‍👧 in it, and | then\n\n```go\nfunc main() {}\n```\n"))
			p.pictureFits(size[0], size[1])
			p.key("a", "b", "宽")
			p.pass(time.Second)
			a.ask(p, request("make install"))
			p.pictureFits(size[0], size[1])
			p.key("esc")
			p.enter("/help")
			p.pictureFits(size[0], size[1])
			p.does(done())
			p.enter("/sessions")
			p.pictureFits(size[0], size[1])
			p.send(tea.WindowSizeMsg{Width: 80, Height: 24}, tea.WindowSizeMsg{Width: 12, Height: 9})
			p.pictureFits(12, 9)
		})
	}
}

func TestThePictureNeverShrinksWhileTextStreams(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1))
		height := 0
		for i := range 120 {
			p.does(chunk(fmt.Sprintf("Paragraph %d has a few words.", i)))
			if i%3 == 2 {
				p.does(chunk("\n\n"))
			}
			now := strings.Count(p.m.View().Content, "\n") + 1
			if now < height {
				t.Fatalf("the picture shrank from %d to %d lines at piece %d", height, now, i)
			}
			height = now
		}
		p.does(done())
	})
}

func TestControlSequencesOfTheModelAreNeutralised(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1), chunk("\x1b]0;owned\x07red \x1b[31mtext\x1b[2J and \x9b5m more"), done())
		all := strings.Join(p.printed, "\n") + p.m.View().Content
		for _, bad := range []string{"\x1b]0;", "\x1b[2J", "\x1b[31m", "\x9b"} {
			if strings.Contains(all, bad) {
				t.Errorf("%q reaches the terminal", bad)
			}
		}
	})
}

func TestB35_ARetryTakesBackWhatWasSaid(t *testing.T) {
	retry := llm.StreamEvent{Type: llm.StreamEventTypeRetry, Retry: &llm.RetryInfo{Attempt: 1, Err: errors.New("reset")}}
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1), chunk("A whole paragraph.\n\nand half of"))
		p.sees("A whole paragraph.")
		p.does(retry)
		p.seesNot("A whole paragraph.")
		p.sees("Retrying (attempt 1)...")
		p.does(chunk("Something else."), done())
		p.sees("Something else.")
		if p.m.lastAnswer != "Something else." {
			t.Errorf("the answer is %q", p.m.lastAnswer)
		}
	})
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1), chunk(strings.Repeat("A paragraph.\n\n", 40)))
		p.does(retry, chunk("Something else."), done())
		p.sees("The answer above was cut off. It begins anew:")
		p.sees("Something else.")
	})
}

func TestTextThatPoursInIsDrawnThirtyTimesASecond(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1))
		drawn := map[time.Time]bool{}
		for range 1000 {
			p.client.all()[0].queue <- chunk("word ")
			time.Sleep(time.Millisecond)
			p.settle()
			drawn[p.m.frame.drawn] = true
		}
		// The spinner draws as well, twelve times a second.
		if len(drawn) > 46 {
			t.Errorf("%d pictures were drawn in a second", len(drawn))
		}
		if len(drawn) < 20 {
			t.Errorf("only %d pictures were drawn in a second", len(drawn))
		}
		p.does(done())
		if got := len(strings.Fields(p.m.lastAnswer)); got != 1000 {
			t.Errorf("%d words arrived", got)
		}
	})
}

func TestAKeyIsDrawnAtOnceWhileTextPoursIn(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1), chunk("text"))
		p.client.all()[0].queue <- chunk(" and more")
		p.key("x")
		p.sees("❯ x")
	})
}

// benchmarkStream takes in text after a transcript of some lines.
func benchmarkStream(b *testing.B, lines int) {
	m := New(Options{
		NewRegistry: noTools, Config: &memoryConfig{choice: ModelChoice{Name: "acme/one"}},
		Dir: "/home/ada/project", Home: "/home/ada",
	})
	defer m.stop()
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.state = newState(nil)
	m.client = &playedClient{}
	m.startTurn("do it")
	for range lines {
		m.stream.turn.Fold(chunk("A line of the answer with some words in it.\n\n"))
	}
	m.draw(frameMsg{})
	m.transcript.unprinted = nil
	b.ResetTimer()
	for i := range b.N {
		piece := chunk("word ")
		if i%12 == 11 {
			piece = chunk("\n\n")
		}
		m.fold([]llm.StreamEvent{piece})
		m.draw(frameMsg{})
		m.transcript.unprinted, m.transcript.printing = nil, false
	}
}

func BenchmarkPieceAfter100Lines(b *testing.B)    { benchmarkStream(b, 100) }
func BenchmarkPieceAfter100000Lines(b *testing.B) { benchmarkStream(b, 100_000) }
