package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm"
	"keen/internal/llm/token"
	"keen/internal/session"
)

// working begins a turn that has said and done something.
func (p *program) working() {
	p.t.Helper()
	p.enter("do it")
	p.does(step(1), chunk("I read the file."), usage(500, 20))
	p.does(ran("1", "read_file", "RAW-OUTPUT-MARKER")...)
}

func applied() llm.StreamEvent { return compaction(llm.StreamEventTypeAutoCompactionApplied) }

func failed(err error) llm.StreamEvent {
	return llm.StreamEvent{Type: llm.StreamEventTypeAutoCompactionFailed, AutoCompaction: &llm.AutoCompactionEvent{Err: err}}
}

func forced(e llm.StreamEvent) llm.StreamEvent {
	e.AutoCompaction.Forced = true
	return e
}

func TestStartedChangesNothingButTheWordsOfTheLoader(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.pass(3 * time.Second)
		before, stream := p.screen(), p.m.stream
		calls := 0
		p.does(started(&calls))
		if got, want := p.screen(), strings.Replace(before, "Working", "Compacting...", 1); withoutSpinner(got) != withoutSpinner(strings.Replace(want, "esc to interrupt", "esc to skip the compaction", 1)) {
			t.Errorf("the picture is\n%s\nbefore it was\n%s", got, before)
		}
		if p.m.stream.turn != stream.turn || p.m.stream.events != stream.events || !p.m.spinner.Running() || p.m.spinner.Elapsed() < 3*time.Second {
			t.Error("the stream, the spinner or the elapsed time began anew")
		}
		p.pass(time.Second)
		p.sees("Compacting... · 4s")
	})
}

// withoutSpinner replaces the frame of the spinner, which depends on the time.
func withoutSpinner(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x2800 && r < 0x2900 {
			return '*'
		}
		return r
	}, s)
}

func TestEscDuringCompactionCancelsTheChildAndNotTheTurn(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls))
		p.key("esc", "esc")
		if calls != 1 {
			t.Errorf("the child was cancelled %d times", calls)
		}
		if p.client.all()[0].ctx.Err() != nil || p.m.stream.interrupted {
			t.Error("the turn was cancelled")
		}
		p.does(compaction(llm.StreamEventTypeAutoCompactionCancelled), step(2), chunk("I go on."), done())
		p.sees("I go on.")
		p.idle()
	})
}

func TestCtrlCDuringCompactionCancelsTheTurn(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls))
		p.key("ctrl+c")
		if p.client.all()[0].ctx.Err() == nil {
			t.Error("the turn was not cancelled")
		}
		if calls != 0 {
			t.Error("the child was cancelled by itself: it ends with its parent")
		}
		p.idle()
		p.sees("Interrupted.")
	})
}

func TestAppliedCheckpointsTheTurnOnceAndGoesOn(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls), applied())
		if calls != 0 {
			t.Error("an applied compaction was cancelled")
		}
		state := p.m.state.Messages()
		if len(state) != 1 || state[0].Content != wrapperText || state[0].Role != llm.RoleUser {
			t.Errorf("the state is %+v", state)
		}
		if p.m.compaction.mode != compactionNone || !p.m.stream.active() || len(p.m.stream.turn.Handler().Segments()) != 0 {
			t.Error("the stream did not go on with fresh contents")
		}
		p.sees("Working")
		p.sees("Context compacted automatically.")
		p.does(step(2), chunk("Now I change it."), usage(20, 7), done())
		p.idle()
		p.seesNot("PRIVATE SUMMARY")
		for _, text := range []string{"I read the file.", "✓ Read a.go", "Now I change it."} {
			if n := strings.Count(p.everything(), text); n != 1 {
				t.Errorf("%q is %d times on the screen", text, n)
			}
		}
		var contents []string
		for _, m := range p.m.state.Messages() {
			contents = append(contents, m.Content)
		}
		if diff := cmp.Diff([]string{wrapperText, "Now I change it."}, contents); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(session.BuildConversation(p.stored()), p.m.state.Messages()); diff != "" {
			t.Errorf("a resume would see another conversation (-resume +state):\n%s", diff)
		}
	})
}

func TestTheNotificationOfACompactionExpiresAndIsNotStored(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls), applied())
		p.pass(1900 * time.Millisecond)
		p.sees("Context compacted automatically.")
		p.pass(200 * time.Millisecond)
		p.seesNot("Context compacted automatically.")
		p.does(step(2), chunk("Done."), done())
		for _, e := range p.stored() {
			if e.Status != "" || strings.Contains(e.Text, "compacted") {
				t.Errorf("the notification is stored: %+v", e)
			}
		}
		for _, item := range session.Replay(p.stored()) {
			if strings.Contains(item.Text, "ompact") {
				t.Errorf("the notification is replayed: %+v", item)
			}
		}
	})
}

func TestProactiveCancellationAndFailureChangeNothing(t *testing.T) {
	for name, end := range map[string]llm.StreamEvent{
		"cancelled": compaction(llm.StreamEventTypeAutoCompactionCancelled), "failed": failed(errors.New("no summary")),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.working()
				state, events, segments := p.m.state.Messages(), p.stored(), len(p.m.stream.turn.Handler().Segments())
				calls := 0
				p.does(started(&calls), end)
				p.sees("Working")
				p.seesNot("Compacting")
				if p.m.compaction.mode != compactionNone || p.m.compaction.cancel != nil {
					t.Error("the program still compacts")
				}
				if diff := cmp.Diff(state, p.m.state.Messages()); diff != "" {
					t.Errorf("state (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(events, p.stored()); diff != "" {
					t.Errorf("session (-before +after):\n%s", diff)
				}
				if got := len(p.m.stream.turn.Handler().Segments()); got != segments {
					t.Errorf("%d segments, before %d", got, segments)
				}
				p.does(step(2), chunk("After."), done())
				p.idle()
				if got := p.m.lastAnswer; got != "I read the file.\n\nAfter." {
					t.Errorf("the answer is %q", got)
				}
			})
		})
	}
}

func TestForcedFailureIsOneActionableError(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		limit := fmt.Errorf("the conversation does not fit; use /compact or paste less: %w", llm.ErrContextWindowExceeded)
		p.does(forced(started(&calls)), forced(failed(errors.New("no summary"))), llm.StreamEvent{Type: llm.StreamEventTypeError, Err: limit})
		p.idle()
		p.sees("use /compact or paste less")
		p.seesNot("no summary")
		if n := strings.Count(p.everything(), "✗"); n != 1 {
			t.Errorf("%d errors are shown:\n%s", n, p.everything())
		}
		p.enter("go on")
		if got := p.prompts(); len(got) != 2 {
			t.Errorf("the next prompt was not sent: %q", got)
		}
	})
}

// endings are all ways in which a turn can end.
func endings() map[string]func(p *program) {
	incomplete := llm.StreamEvent{Type: llm.StreamEventTypeIncomplete, Err: errors.New("the answer was cut")}
	failure := llm.StreamEvent{Type: llm.StreamEventTypeError, Err: errors.New("the server is gone")}
	compacting := func(p *program) {
		calls := 0
		p.does(started(&calls))
	}
	return map[string]func(p *program){
		"done":       func(p *program) { p.does(done()) },
		"error":      func(p *program) { p.does(failure) },
		"incomplete": func(p *program) { p.does(incomplete) },
		"interrupt":  func(p *program) { p.key("esc") },
		"closed":     func(p *program) { p.breaksOff() },
		"ctrl+c":     func(p *program) { p.key("ctrl+c") },
		"ctrl+c during compaction": func(p *program) {
			compacting(p)
			p.key("ctrl+c")
		},
		"error during compaction": func(p *program) {
			compacting(p)
			p.does(failure)
		},
		"done during compaction": func(p *program) {
			compacting(p)
			p.does(done())
		},
		"closed during compaction": func(p *program) {
			compacting(p)
			p.breaksOff()
		},
	}
}

func TestTheProgramIsIdleAfterEveryEnding(t *testing.T) {
	for name, end := range endings() {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.working()
				end(p)
				p.idle()
				p.seesNot("Compacting")
				events := p.stored()
				if last := events[len(events)-1]; last.Kind != session.KindAssistantTurn || last.Outcome == session.OutcomeStep {
					t.Errorf("the end is stored as %+v", last)
				}
				p.enter("again")
				p.does(step(1), chunk("Here I am."), done())
				p.sees("Here I am.")
				p.idle()
			})
		})
	}
}

func TestATurnThatCannotStartIsAnError(t *testing.T) {
	play(t, func(p *program) {
		p.client.refuse = errors.New("no such model")
		p.enter("do it")
		p.idle()
		p.sees("no such model")
	})
}

func TestB70_EscStopsAManualCompactionAtAnyMoment(t *testing.T) {
	retry := llm.StreamEvent{Type: llm.StreamEventTypeRetry, Retry: &llm.RetryInfo{Attempt: 1, Delay: time.Minute, Err: errors.New("reset")}}
	for name, said := range map[string][]llm.StreamEvent{
		"before the first byte": nil, "in the middle of the text": {chunk("## Goal\nhalf of")}, "while it waits to try again": {chunk("## Goal"), retry},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.enter("do it")
				p.does(step(1), chunk("Done."), done())
				state := p.m.state.Messages()
				p.client.compact = func(ctx context.Context, _ []llm.Message, emit func(llm.StreamEvent)) error {
					for _, e := range said {
						emit(e)
					}
					<-ctx.Done()
					return ctx.Err()
				}
				p.enter("/compact")
				p.pass(time.Second)
				if p.m.compaction.mode != compactionManual {
					t.Fatal("no compaction is running")
				}
				p.key("esc")
				p.idle()
				p.sees("Compaction cancelled.")
				if diff := cmp.Diff(state, p.m.state.Messages()); diff != "" {
					t.Errorf("state (-before +after):\n%s", diff)
				}
			})
		})
	}
}

func TestB71_ACancelledCompactionLeavesNothingBehind(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		first, second := 0, 0
		p.does(started(&first))
		p.key("esc")
		p.does(compaction(llm.StreamEventTypeAutoCompactionCancelled), step(2), started(&second))
		p.sees("Compacting...")
		p.key("esc")
		if first != 1 || second != 1 {
			t.Errorf("the first was cancelled %d times, the second %d times", first, second)
		}
	})
}

func TestB73_CompactDuringAutomaticCompactionIsRefused(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls))
		p.enter("/compact")
		p.sees("/compact has to wait: a compaction is running")
		p.does(applied(), step(2), chunk("On."), done())
		p.idle()
		count := 0
		for _, e := range p.stored() {
			if e.Kind == session.KindCompactionApplied {
				count++
			}
		}
		if count != 1 || !strings.Contains(p.everything(), "On.") {
			t.Errorf("%d compactions are stored", count)
		}
		if p.m.editor.Value() != "/compact" {
			t.Errorf("what was typed is gone: %q", p.m.editor.Value())
		}
	})
}

func TestB74_PromptsTypedDuringACompactionAreSentAfterTheTurn(t *testing.T) {
	for name, end := range map[string]llm.StreamEvent{
		"applied": applied(), "failed": failed(errors.New("no summary")), "cancelled": compaction(llm.StreamEventTypeAutoCompactionCancelled),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.working()
				calls := 0
				p.does(started(&calls))
				p.enter("first")
				p.enter("second")
				p.does(end, step(2), chunk("Over."), done())
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

func TestB76_ACompactionThatNeverEndsItselfEndsWithItsTurn(t *testing.T) {
	for _, name := range []string{"closed during compaction", "done during compaction", "error during compaction"} {
		play(t, func(p *program) {
			p.working()
			endings()[name](p)
			p.idle()
			p.seesNot("Compacting")
		})
	}
}

func TestB77_ACompactionDoesNotLeakIntoAnotherSession(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls))
		p.key("ctrl+c")
		p.enter("/new")
		p.idle()
		p.key("esc")
		if calls != 0 {
			t.Error("Esc called the cancel function of the session before")
		}
		if len(p.m.state.Messages()) != 0 || p.m.journal.id() != "" {
			t.Error("the new session is not empty")
		}
	})
}

func TestB86_EachCompactionIsSeenOnce(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(compactedTurn()...)
		p.idle()
		count := 0
		for _, e := range p.stored() {
			if e.Kind == session.KindCompactionApplied {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d compactions are stored", count)
		}
		if want := "I read the file.\n\nNow I change it.\n\nFinished."; p.m.lastAnswer != want {
			t.Errorf("the answer is %q, headless runs say %q", p.m.lastAnswer, want)
		}
	})
}

func TestB89_TheContextIsUnknownAfterACompactionUntilItIsReported(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.sees("context 520 of 1k")
		calls := 0
		p.does(started(&calls), applied())
		p.sees("context unknown")
		p.does(step(2), chunk("x"))
		p.sees("context unknown")
		p.does(usage(60, 10))
		p.sees("context 70 of 1k")
		p.does(done())
		p.sees("1.6k↑ 80↓") // The compaction itself counts here, and only here.
	})
}

func TestB95_TheContextGrowsWithToolOutputBeforeAnyReport(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.does(llm.StreamEvent{Type: llm.StreamEventTypeStepStarted, Step: &llm.StepInfo{Number: 2, ContextTokens: 900, Budget: 1000, Window: 2000}})
		p.sees("context 900 of 1k")
	})
}

func TestB97_ManualCompactionWorksAboveTheWindow(t *testing.T) {
	play(t, func(p *program) {
		p.client.budget = 9000
		p.enter("do it")
		p.does(step(1), chunk(strings.Repeat("All of this was said at length. ", 4000)), done())
		largest := 0
		p.client.compact = func(_ context.Context, request []llm.Message, emit func(llm.StreamEvent)) error {
			size := 0
			for _, m := range request {
				size += token.Estimate(m.Content)
			}
			largest = max(largest, size)
			emit(chunk("## Goal\nDo what the user asked for, step by step, and say what came of it.\n"))
			return nil
		}
		p.enter("/compact the goal")
		p.idle()
		p.sees("Context compacted.")
		if largest == 0 || largest > 9000 {
			t.Errorf("a compaction request had %d tokens", largest)
		}
		if state := p.m.state.Messages(); len(state) != 1 || state[0].Compaction == nil {
			t.Errorf("the state is %+v", state)
		}
	})
}

func TestManualCompactionIsVisibleStoredAndReplayed(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1), chunk("Done. "+strings.Repeat("There was a lot to say about it. ", 20)), usage(500, 10), done())
		gate := make(chan struct{})
		var asked string
		p.client.compact = func(_ context.Context, request []llm.Message, emit func(llm.StreamEvent)) error {
			for _, m := range request {
				asked += m.Content
			}
			emit(chunk("## Go"))
			emit(llm.StreamEvent{Type: llm.StreamEventTypeRetry, Retry: &llm.RetryInfo{Attempt: 1, Err: errors.New("reset")}})
			emit(chunk("## Goal\nThe summary that is shown says enough to be a usable one."))
			<-gate
			return nil
		}
		p.enter("/compact the tests")
		p.pass(100 * time.Millisecond)
		p.sees("The summary that is shown says enough to be a usable one.")
		p.enter("typed meanwhile")
		close(gate)
		p.settle()
		p.sees("Context compacted.")
		p.sees("context unknown")
		if !strings.Contains(asked, "the tests") || strings.Contains(asked, "typed meanwhile") {
			t.Errorf("the request was %q", asked)
		}
		var replayed []string
		for _, item := range session.Replay(p.stored()) {
			replayed = append(replayed, fmt.Sprintf("%s %.40s", item.Kind, item.Text))
		}
		want := []string{"user do it", "text Done. There was a lot to say about it. T", "summary ## Goal\nThe summary that is shown says e", "status Context compacted.", "user typed meanwhile"}
		if diff := cmp.Diff(want, replayed); diff != "" {
			t.Errorf("replay (-want +got):\n%s", diff)
		}
		p.does(step(1), chunk("Ok."), done())
		p.idle()
	})
}

func TestAManualCompactionThatFailsKeepsTheConversation(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.does(step(1), chunk("Done."), done())
		before := p.m.state.Messages()
		p.client.compact = func(context.Context, []llm.Message, func(llm.StreamEvent)) error {
			return errors.New("the server is gone")
		}
		p.enter("/compact")
		p.idle()
		p.sees("the server is gone")
		if diff := cmp.Diff(before, p.m.state.Messages()); diff != "" {
			t.Errorf("state (-before +after):\n%s", diff)
		}
	})
}
