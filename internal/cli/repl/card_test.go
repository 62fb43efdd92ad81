package repl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

// wantAnswers fails the test unless so many requests were answered.
func (a *asker) wantAnswers(t *testing.T, n int) {
	t.Helper()
	if got := a.answered(); len(got) != n {
		t.Fatalf("the answers are %q, want %d", got, n)
	}
}

// typed returns all that was typed and is kept: prompts that were sent, those
// that wait, and what stands in the input, each sent one closed by a slash.
func (p *program) typed() string {
	var b strings.Builder
	for _, prompt := range append(p.prompts()[1:], p.m.queue...) {
		b.WriteString(prompt + "/")
	}
	return b.String() + p.m.editor.Value()
}

func TestACardWaitsWhileTheInputHoldsText(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		p.key("n", "e", "x")
		a.ask(p, request("make one"))
		p.pass(10 * time.Second)
		p.sees("tab to answer · it waits while you type")
		p.key("t", "enter")
		a.wantAnswers(t, 0)
		if diff := cmp.Diff([]string{"next"}, p.m.queue); diff != "" {
			t.Errorf("queue (-want +got):\n%s", diff)
		}
		p.pass(typingPause - 100*time.Millisecond)
		p.sees("it waits while you type")
		p.pass(100 * time.Millisecond)
		p.seesNot("it waits while you type")
		p.seesNot("enter confirm")
		p.key("enter")
		a.wantAnswers(t, 0)
		p.pass(answerDelay)
		p.sees("enter confirm")
		p.key("enter")
		a.wantAnswers(t, 1)
	})
}

// Whenever somebody types a prompt and Enter around the moment at which a card
// comes up, the prompt is sent and the card is not answered.
func TestAPromptTypedAroundACardIsSentWhateverTheMoment(t *testing.T) {
	const word = "abcdef"
	for pause := range 9 {
		for at := range len(word) + 2 {
			pause := time.Duration(pause) * 300 * time.Millisecond
			playAsking(t, func(p *program, a *asker) {
				for i, key := range append(strings.Split(word, ""), "enter", "") {
					if i == at {
						a.ask(p, request("make one"))
						p.pass(pause)
					}
					if key != "" {
						p.key(key)
					}
				}
				a.wantAnswers(t, 0)
				if got := p.typed(); got != word+"/" {
					t.Errorf("asked before key %d, %v before it: %q was kept", at, pause, got)
				}
				p.key("esc")
			})
		}
	}
}

// Whatever is typed, whenever, and however many cards come up and go away:
// no character gets lost, and Enter answers nothing that was not in sight.
func TestNothingTypedIsLostAndNothingIsAnsweredBlindly(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 13))
		answered := 0
		playAsking(t, func(p *program, a *asker) {
			want := ""
			asked := 0
			// When the last key went to the input, and the present card came in
			// front.
			var typed, shown time.Time
			for range 120 {
				before := len(a.answered())
				if n := r.IntN(2); n == 0 {
					p.pass(time.Duration(r.IntN(20)) * 100 * time.Millisecond)
				}
				toInput := !p.m.focus.onCard
				switch n := r.IntN(20); {
				case n < 3:
					key := string(rune('a' + r.IntN(26)))
					want += key
					p.key(key)
					typed = time.Now()
				case n < 10:
					if p.m.editor.Value() != "" && !p.m.focus.onCard {
						want += "/"
					}
					p.key("enter")
					if len(a.answered()) > before {
						if idle := time.Since(typed); idle < typingPause+answerDelay {
							t.Fatalf("seed %d: Enter answered %v after a key for the input", seed, idle)
						}
						if seen := time.Since(shown); seen < answerDelay {
							t.Fatalf("seed %d: Enter answered a card that was in sight for %v", seed, seen)
						}
						shown = time.Now()
					}
					if toInput {
						typed = time.Now()
					}
				case n < 13 && asked-before < 3:
					if asked == before {
						shown = time.Now()
					}
					asked++
					a.ask(p, request(fmt.Sprintf("make %d", asked)))
				}
				answered = len(a.answered())
				if got := p.typed(); got != want {
					t.Fatalf("seed %d: kept %q, typed %q", seed, got, want)
				}
			}
		})
		if answered == 0 {
			t.Errorf("seed %d: nothing was ever answered", seed)
		}
	}
}

func TestTextAfterACardCameUpGoesToTheInput(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		p.read()
		p.sees("enter confirm")
		for _, r := range "no wait" {
			p.key(string(r))
		}
		p.seesNot("Deny: ")
		p.sees("❯ no wait")
		p.sees("it waits while you type")
		p.send(tea.PasteMsg{Content: " for me"})
		p.sees("❯ no wait for me")
		a.wantAnswers(t, 0)
	})
}

func TestAPasteAnswersNoQuestionAndIsKept(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		p.read()
		p.send(tea.PasteMsg{Content: "a whole\nprompt\n"})
		a.wantAnswers(t, 0)
		if got := p.m.editor.Value(); got != "a whole\nprompt\n" {
			t.Errorf("the input holds %q", got)
		}
	})
}

func TestOnlyOnePlaceHasTheKeys(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		p.read()
		p.key("ctrl+r")
		p.seesNot("search:")
		p.key("ctrl+d") // The input is empty: it would leave.
		p.seesNot("again to leave")
		p.key("tab")
		p.sees("tab to answer")
		p.key("ctrl+r")
		p.sees("search:")
		p.sees("esc, then tab to answer")
		p.pass(10 * time.Second)
		p.key("enter")
		a.wantAnswers(t, 0)
		p.seesNot("search:")
	}, func(o *Options) { o.History = nil })
}

func TestAKeyInTheMomentACardComesUpIsForTheInput(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one")) // Nobody has typed for long.
		p.pass(answerDelay / 2)
		p.key("up") // An earlier prompt, to send it again.
		p.sees("❯ do it")
		p.pass(answerDelay)
		p.key("enter")
		a.wantAnswers(t, 0)
		if diff := cmp.Diff([]string{"do it"}, p.m.queue); diff != "" {
			t.Errorf("queue (-want +got):\n%s", diff)
		}
	})
}

func TestTabMovesBetweenInputAndCard(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		p.key("d", "r", "a", "f", "t")
		a.ask(p, request("make one"))
		p.key("tab", "enter")
		a.wantAnswers(t, 0)
		p.pass(answerDelay)
		p.key("tab", "tab", "enter") // To the input and back: the time begins anew.
		a.wantAnswers(t, 0)
		p.pass(answerDelay)
		p.key("enter")
		a.wantAnswers(t, 1)
		p.sees("❯ draft")
	})
}

func TestTheNextCardDoesNotGetTheEnterOfTheLast(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		a.ask(p, request("npm two"))
		p.read()
		p.key("enter", "enter", "enter")
		a.wantAnswers(t, 1)
		p.sees("npm two")
		p.key("down") // Whoever is at it may choose at once.
		p.pass(answerDelay)
		p.key("enter")
		a.wantAnswers(t, 2)
	})
}

func TestAHeldEnterAnswersNothing(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		p.read()
		p.send(tea.KeyPressMsg{Code: tea.KeyEnter, IsRepeat: true})
		a.wantAnswers(t, 0)
		p.key("enter")
		a.wantAnswers(t, 1)
	})
}

func TestAMessageThatIsNotSentGoesToTheInput(t *testing.T) {
	denyWith := func(p *program, a *asker, text string) {
		a.ask(p, request("make one"))
		p.read()
		p.key("down", "down")
		for _, r := range text {
			p.key(string(r))
		}
		p.sees("Deny: " + text)
	}
	for name, end := range map[string]func(p *program){
		"allowed after all": func(p *program) { p.key("up", "enter") },
		"esc":               func(p *program) { p.key("esc") },
		"the turn ended":    func(p *program) { p.key("ctrl+c") },
	} {
		t.Run(name, func(t *testing.T) {
			playAsking(t, func(p *program, a *asker) {
				denyWith(p, a, "use go")
				end(p)
				p.settle()
				if got := p.m.editor.Value(); got != "use go" {
					t.Errorf("the input holds %q", got)
				}
			})
		})
	}
}

func TestAListThatComesUpByItselfDoesNotGetThePromptBeingTyped(t *testing.T) {
	applied := ""
	setup := func(o *Options) {
		o.Config = &memoryConfig{}
		o.Setup = func(ctx context.Context) []SetupChoice {
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
			apply := func(title string) SetupChoice {
				return SetupChoice{Title: title, Apply: func(context.Context, func(string)) (ModelChoice, error) {
					applied = title
					return ModelChoice{Name: "acme/one"}, nil
				}}
			}
			return []SetupChoice{apply("first way"), apply("second way")}
		}
	}
	play(t, func(p *program) {
		p.key("h", "e")
		p.pass(4 * time.Second)
		p.sees("Where should the model come from?")
		p.sees("tab to answer")
		p.key("y", "down")
		p.sees("❯ hey")
		p.key("tab", "down")
		p.pass(answerDelay)
		p.key("enter")
		p.pass(time.Second)
		if applied != "second way" {
			t.Errorf("%q was chosen", applied)
		}
		p.sees("❯ hey")
	}, setup)
	play(t, func(p *program) {
		p.pass(3100 * time.Millisecond)
		p.key("h") // The list came up a moment ago.
		p.sees("❯ h")
		p.key("backspace")
		p.read()
		for _, r := range "way of life" { // Now it is in sight, and searches.
			p.key(string(r))
		}
		p.key("esc") // It was the beginning of a prompt.
		p.sees("❯ way of life")
	}, setup)
}

func TestAListThatWasAskedForHasTheKeysAtOnce(t *testing.T) {
	models := func(wait time.Duration) func(o *Options) {
		return func(o *Options) {
			o.Models = func(ctx context.Context) ([]ModelInfo, error) {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
				}
				return []ModelInfo{{Name: "acme/one"}, {Name: "acme/two"}}, nil
			}
		}
	}
	play(t, func(p *program) {
		p.enter("/model")
		p.pass(100 * time.Millisecond)
		p.key("down", "enter")
		p.sees("acme/two ·")
	}, models(50*time.Millisecond))
	// Whoever went on to something else is not disturbed.
	play(t, func(p *program) {
		p.enter("/model")
		p.key("h", "i")
		p.pass(time.Second)
		p.sees("tab to answer")
		p.key("enter")
		p.settle()
		if diff := cmp.Diff([]string{"hi"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
	}, models(500*time.Millisecond))
}

func TestFilesThatAreFoundLateDoNotGetTheEnterOfAPrompt(t *testing.T) {
	play(t, func(p *program) {
		for _, r := range "read @mai" {
			p.key(string(r))
		}
		p.pass(320 * time.Millisecond)
		p.sees("main.go")
		p.key("enter")
		p.settle()
		if diff := cmp.Diff([]string{"read @mai"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
		p.does(done())
		for _, r := range "read @main.go" { // Named in full there is nothing to complete.
			p.key(string(r))
		}
		p.key("enter")
		p.settle()
		if diff := cmp.Diff([]string{"read @mai", "read @main.go"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
	}, func(o *Options) {
		o.Files = func(ctx context.Context) ([]string, error) {
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
			return []string{"main.go", "cmd/main.go"}, nil
		}
	})
}
