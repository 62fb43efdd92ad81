package repl

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueuedPromptsAreSentInOrderAfterEveryEnding(t *testing.T) {
	for name, end := range endings() {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.working()
				p.enter("first")
				p.enter("second")
				p.sees("Queue · 2 waiting")
				end(p)
				p.does(step(1), done())
				p.does(step(1), done())
				if diff := cmp.Diff([]string{"do it", "first", "second"}, p.prompts()); diff != "" {
					t.Errorf("prompts (-want +got):\n%s", diff)
				}
				p.idle()
			})
		})
	}
}

func TestUpTakesTheLastWaitingPromptBack(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.enter("first")
		p.enter("second")
		p.key("up")
		if got := p.m.editor.Value(); got != "second" {
			t.Errorf("the editor holds %q", got)
		}
		p.key("!", "enter")
		p.does(done())
		p.does(done())
		p.does(done())
		if diff := cmp.Diff([]string{"do it", "first", "second!"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
	})
}

func TestTheQueueIsShownAndCleared(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		for _, prompt := range []string{"a1", "a2", "a3", "a4", "a5", "a6"} {
			p.enter(prompt)
		}
		p.sees("1 more")
		p.enter("/queue clear")
		p.sees("Queue cleared")
		p.enter("/queue")
		p.sees("Queue is empty")
		p.does(done())
		p.idle()
		if got := p.prompts(); len(got) != 1 {
			t.Errorf("%q were sent", got)
		}
	})
}

func TestPromptsWaitForTheClient(t *testing.T) {
	play(t, func(p *program) {
		if diff := cmp.Diff([]string{"from the command line"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
	}, func(o *Options) { o.Prompt = "from the command line" })
}

func TestCommandsThatHaveToWaitSayWhy(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		for _, command := range []string{"/compact", "/new", "/clear", "/sessions", "/resume", "/model", "/init", "/login", "/logout"} {
			p.enter(command)
			p.sees(command + " has to wait: a turn is running, Esc interrupts it")
			if p.m.editor.Value() != command {
				t.Errorf("%s is gone from the editor", command)
			}
			p.key("ctrl+u")
		}
		for _, command := range []string{"/help", "/context", "/usage", "/queue", "/permissions", "/copy"} {
			p.enter(command)
			p.seesNot(command + " has to wait")
		}
		p.pass(3 * time.Second)
		p.does(done())
		p.idle()
	})
}
