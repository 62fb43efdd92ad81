package repl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm"
	"keen/internal/session"
)

// saved writes a session and returns its id.
func (p *program) saved(events ...session.Event) string {
	p.t.Helper()
	log, err := p.options.Sessions.Create()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range events {
		if err := log.Append(e); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		p.t.Fatal(err)
	}
	return log.ID()
}

func compactedSession() []session.Event {
	return []session.Event{
		{Kind: session.KindUserMessage, Text: "do it"},
		{Kind: session.KindAssistantTurn, Outcome: session.OutcomeCheckpoint, Model: "acme/one", Usage: &llm.Usage{InputTokens: 700, OutputTokens: 10}, Messages: []llm.Message{{Role: llm.RoleAssistant, Content: "I read the file."}}},
		{Kind: session.KindCompactionApplied, Messages: compaction(llm.StreamEventTypeAutoCompactionApplied).AutoCompaction.Replacement},
		{Kind: session.KindAssistantTurn, Outcome: session.OutcomeDone, Model: "acme/one", Messages: []llm.Message{{Role: llm.RoleAssistant, Content: "Now it is changed."}}},
	}
}

func TestLookingAroundLeavesNoSession(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/help")
		p.enter("/context")
		p.enter("/new")
		if n := p.sessionFiles(); n != 0 {
			t.Errorf("%d sessions are on the disk", n)
		}
	})
}

func TestB82_ResumeReplaysWhatWasVisibleAndProjectsTheReplacement(t *testing.T) {
	play(t, func(p *program) {
		id := p.saved(compactedSession()...)
		p.enter("/resume " + id[:8])
		p.sees("I read the file.")
		p.sees("Now it is changed.")
		p.seesNot("PRIVATE SUMMARY")
		p.seesNot("compacted")
		p.sees("700↑ 10↓")
		p.enter("go on")
		request := p.client.all()[0].request
		var contents []string
		for _, m := range request {
			contents = append(contents, m.Content)
		}
		if diff := cmp.Diff([]string{"system", wrapperText, "Now it is changed.", "go on"}, contents); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		p.does(step(1), chunk("More."), done())
		if got := p.m.journal.id(); got != id {
			t.Errorf("the turn is stored in session %s, not in %s", got, id)
		}
	})
}

func TestTheProgramStartsWithASession(t *testing.T) {
	var id string
	play(t, func(p *program) {
		p.sees("Now it is changed.")
	}, func(o *Options) {
		p := &program{t: t, options: o}
		id = p.saved(compactedSession()...)
		o.Resume = id
	})
}

func TestTheStartScreenNamesTheLatestSession(t *testing.T) {
	play(t, func(p *program) {
		p.sees("do it, just now: /resume")
		p.enter("/resume")
		p.sees("Now it is changed.")
	}, func(o *Options) {
		(&program{t: t, options: o}).saved(compactedSession()...)
	})
}

func TestASessionThatWasCutOffSaysSo(t *testing.T) {
	for name, events := range map[string][]session.Event{
		"before the first step": {{Kind: session.KindUserMessage, Text: "do it"}},
		"after a step": {
			{Kind: session.KindUserMessage, Text: "do it"},
			{Kind: session.KindAssistantTurn, Outcome: session.OutcomeStep, Messages: []llm.Message{{Role: llm.RoleAssistant, Content: "Step."}}},
		},
		"after a checkpoint": compactedSession()[:3],
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.enter("/resume " + p.saved(events...))
				p.sees("The last turn was cut off")
			})
		})
	}
	play(t, func(p *program) {
		p.enter("/resume " + p.saved(compactedSession()...))
		p.seesNot("cut off")
	})
}

func TestAnotherSessionIsChosenFromTheList(t *testing.T) {
	play(t, func(p *program) {
		p.saved(session.Event{Kind: session.KindUserMessage, Text: "about cats"})
		p.pass(time.Minute)
		p.saved(session.Event{Kind: session.KindUserMessage, Text: "about dogs"})
		p.enter("/sessions")
		p.sees("about cats")
		p.sees("1m ago")
		for _, r := range "cats" {
			p.key(string(r))
		}
		p.seesNot("about dogs")
		p.key("enter")
		p.sees("about cats")
		if got := p.m.state.Messages(); len(got) != 1 || got[0].Content != "about cats" {
			t.Errorf("the state is %+v", got)
		}
		p.enter("/sessions")
		p.seesNot("2 of 2")
		p.key("esc")
		p.idle()
	})
}

func TestASessionInUseElsewhereIsRefused(t *testing.T) {
	play(t, func(p *program) {
		log, err := p.options.Sessions.Create()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = log.Close() }()
		if err := log.Append(session.Event{Kind: session.KindUserMessage, Text: "x"}); err != nil {
			t.Fatal(err)
		}
		p.enter("/resume " + log.ID())
		p.sees("in use by another keen")
		p.idle()
		p.enter("still here")
		p.does(step(1), chunk("Yes."), done())
		p.sees("Yes.")
	})
}

func TestForkAndRename(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/sessions fork")
		p.sees("There is nothing to fork yet")
		p.enter("do it")
		p.does(step(1), chunk("Done."), done())
		parent := p.m.journal.id()
		p.enter("/sessions rename the first try")
		p.enter("/sessions fork")
		p.sees("fork of session " + parent[:8])
		p.enter("another way")
		p.does(step(1), chunk("Done differently."), done())
		if p.m.journal.id() == parent {
			t.Error("the fork is the session itself")
		}
		if got := len(p.m.state.Messages()); got != 4 {
			t.Errorf("the fork holds %d messages", got)
		}
		infos, err := p.options.Sessions.List()
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, info := range infos {
			if info.ID == parent && info.Title == "the first try" && info.Turns == 1 {
				named++
			}
		}
		if len(infos) != 2 || named != 1 {
			t.Errorf("the sessions are %+v", infos)
		}
	})
}

func TestLeavingStoresWhatWasDone(t *testing.T) {
	for name, leave := range map[string]func(p *program){
		"exit":      func(p *program) { p.enter("/exit") },
		"terminate": func(p *program) { p.send(terminateMsg{}) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(p *program) {
				p.working()
				p.enter("this is not sent any more")
				leave(p)
				if !p.quit {
					t.Fatal("the program goes on")
				}
				events := p.stored()
				if last := events[len(events)-1]; last.Outcome != session.OutcomeInterrupted || last.Messages[0].Content != "I read the file." {
					t.Errorf("the last event is %+v", last)
				}
				p.sees("Go on with: keen --resume " + p.m.journal.id())
			})
		})
	}
}

func TestCtrlCTwiceLeaves(t *testing.T) {
	play(t, func(p *program) {
		p.key("ctrl+c")
		p.sees("Press Ctrl+C again to leave")
		p.pass(3 * time.Second)
		p.key("ctrl+c")
		if p.quit {
			t.Fatal("two presses with a long time between them left the program")
		}
		p.key("ctrl+c")
		if !p.quit {
			t.Error("two presses did not leave the program")
		}
	})
}

func TestCtrlCAfterAnInterruptedTurnDoesNotLeave(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.key("ctrl+c", "ctrl+c")
		if p.quit {
			t.Error("the second press left the program, although the turn had ended")
		}
		p.sees("Press Ctrl+C again to leave")
	})
}

func TestCtrlCTwiceLeavesATurnThatDoesNotEnd(t *testing.T) {
	play(t, func(p *program) {
		p.client.stubborn = true
		p.working()
		p.key("ctrl+c")
		p.sees("Interrupting")
		if p.quit {
			t.Fatal("one press left the program")
		}
		p.key("ctrl+c")
		if !p.quit {
			t.Error("two presses did not leave the program")
		}
	})
}

func TestAFailedWriteIsSaidOnceAndTheWorkGoesOn(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.does(done())
		p.enter("again")
		p.does(step(1), chunk("Fine."), done())
		p.sees("Fine.")
		if n := strings.Count(p.everything(), "disk full"); n != 1 {
			t.Errorf("the failure is said %d times", n)
		}
	}, func(o *Options) {
		o.Sessions = brokenSessions{Sessions: o.Sessions, err: errors.New("disk full")}
	})
}

func TestExportWritesWhatWasVisibleToANewFile(t *testing.T) {
	dir := t.TempDir()
	play(t, func(p *program) {
		p.enter("/export")
		p.sees("nothing has been said yet")
		p.working()
		p.does(done())
		p.enter("/export out.md")
		p.sees("The session is in")
		p.enter("/export out.md")
		p.sees("give another name")
		text, err := os.ReadFile(filepath.Join(dir, "out.md"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(text), "## You\n\ndo it\n\nI read the file.\n\n- Read a.go (success)\n\n"; got != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
	}, func(o *Options) { o.Dir = dir })
}
