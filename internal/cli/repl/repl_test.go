package repl

import (
	"testing"

	"keen/internal/session"
)

func TestATurnIsShownStoredAndEnds(t *testing.T) {
	play(t, func(p *program) {
		p.enter("hello")
		p.does(step(1), chunk("Hello, "), chunk("**world**."))
		p.sees("Hello, world.")
		p.sees("Working")
		p.does(usage(100, 5), done())
		p.idle()
		if got := len(p.stored()); got != 3 {
			t.Errorf("%d events are stored: %+v", got, p.stored())
		}
		if last := p.stored()[2]; last.Outcome != session.OutcomeDone || last.Messages[0].Content != "Hello, **world**." {
			t.Errorf("the turn is stored as %+v", last)
		}
		if len(p.m.state.Messages()) != 2 {
			t.Errorf("the state holds %+v", p.m.state.Messages())
		}
	})
}
