package repl

import (
	"errors"
	"strings"
	"testing"

	"keen/internal/llm"
	"keen/internal/session"
)

func TestFault23_TheProgramWorksAfterCtrlCDuringACompaction(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls))
		p.enter("queued before")
		p.key("ctrl+c")
		p.does(step(1), chunk("Queued prompt answered."), done())
		p.sees("Queued prompt answered.")
		p.enter("typed after")
		p.does(step(1), chunk("So was the next one."), done())
		p.sees("So was the next one.")
		p.enter("/context")
		p.sees("System prompt")
		p.enter("/exit")
		if !p.quit {
			t.Error("/exit does not leave")
		}
	})
}

func TestFault24_AFailedWriteOfACheckpointIsSaidOnceAndTheTurnGoesOn(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls), applied(), step(2), chunk("I go on."), done())
		p.idle()
		p.sees("I go on.")
		if n := strings.Count(p.everything(), "disk full"); n != 1 {
			t.Errorf("the failure is said %d times:\n%s", n, p.everything())
		}
		if m := p.m.state.Messages(); len(m) != 2 || m[0].Content != wrapperText {
			t.Errorf("the state is %+v", m)
		}
	}, func(o *Options) {
		o.Sessions = brokenSessions{Sessions: o.Sessions, after: 1, err: errors.New("disk full")}
	})
}

func TestFault25_ACompactionThatIsAppliedAfterCtrlCIsKept(t *testing.T) {
	play(t, func(p *program) {
		p.client.stubborn = true
		p.working()
		calls := 0
		p.does(started(&calls))
		p.key("ctrl+c")
		p.does(applied(), llm.StreamEvent{Type: llm.StreamEventTypeIncomplete, Err: p.client.all()[0].ctx.Err()})
		p.idle()
		if m := p.m.state.Messages(); len(m) != 1 || m[0].Content != wrapperText {
			t.Errorf("the state is %+v", m)
		}
		if m := session.BuildConversation(p.stored()); len(m) != 1 || m[0].Content != wrapperText {
			t.Errorf("the session holds %+v", m)
		}
	})
}

// gatedLog lets writes through one by one.
type gatedLog struct {
	Log
	gate    chan struct{}
	batches *[][]session.Event
}

func (l gatedLog) Append(events ...session.Event) error {
	<-l.gate
	*l.batches = append(*l.batches, events)
	return l.Log.Append(events...)
}

type gatedSessions struct {
	Sessions
	gate    chan struct{}
	batches *[][]session.Event
}

func (s gatedSessions) Create() (Log, error) {
	log, err := s.Sessions.Create()
	return gatedLog{Log: log, gate: s.gate, batches: s.batches}, err
}

func TestFault26_ACheckpointIsStoredBeforeTheNextEventIsRead(t *testing.T) {
	gate := make(chan struct{})
	var batches [][]session.Event
	play(t, func(p *program) {
		gate = make(chan struct{})
		p.m.journal.sessions = gatedSessions{Sessions: p.options.Sessions, gate: gate, batches: &batches}
		p.enter("do it")
		gate <- struct{}{} // The prompt.
		calls := 0
		p.does(step(1), chunk("Before."), started(&calls), applied(), step(2), chunk("AFTER"))
		p.seesNot("AFTER")
		if p.m.meter.budget != 1000 || len(p.client.all()[0].queue) == 0 {
			t.Error("events behind the checkpoint were read before it was stored")
		}
		gate <- struct{}{}
		p.does()
		p.sees("AFTER")
		p.does(done())
		gate <- struct{}{}
		p.settle()
		p.idle()
	})
}

func TestFault27_ACheckpointIsOneWrite(t *testing.T) {
	var batches [][]session.Event
	play(t, func(p *program) {
		gate := make(chan struct{})
		close(gate)
		p.m.journal.sessions = gatedSessions{Sessions: p.options.Sessions, gate: gate, batches: &batches}
		p.working()
		calls := 0
		p.does(started(&calls), applied(), step(2), done())
		var shapes []string
		for _, b := range batches {
			var kinds []string
			for _, e := range b {
				kinds = append(kinds, string(e.Kind))
			}
			shapes = append(shapes, strings.Join(kinds, "+"))
		}
		if got, want := strings.Join(shapes, " "), "user_message assistant_turn+compaction_applied assistant_turn"; got != want {
			t.Errorf("the writes are %s, want %s", got, want)
		}
	})
}

func TestFault28_TheTokensOfTheSessionStayKnownAfterACompaction(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		p.sees("500↑ 20↓")
		calls := 0
		p.does(started(&calls), applied())
		p.sees("context unknown")
		p.sees("1.5k↑ 70↓")
	})
}

func TestFault29_CancelledAndFailedLookDifferent(t *testing.T) {
	play(t, func(p *program) {
		p.working()
		calls := 0
		p.does(started(&calls), compaction(llm.StreamEventTypeAutoCompactionCancelled))
		p.sees("Compaction cancelled.")
		p.does(started(&calls), failed(errors.New("the summary was empty")))
		p.sees("Compaction failed: the summary was empty")
	})
}

func TestFault30_TextAroundACheckpointIsSetApart(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		calls := 0
		p.does(step(1), chunk("Before."), started(&calls), applied(), step(2), chunk("After."), done())
		p.enter("/copy")
		if p.copied != "Before.\n\nAfter." {
			t.Errorf("%q was copied", p.copied)
		}
		p.sees("Before.\n\nAfter.")
	})
}
