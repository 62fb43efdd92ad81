package repl

import (
	"testing"
	"time"
)

// moment is a time in milliseconds after the start of a test.
func moment(ms int) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond)
}

var (
	cardUp    = scene{card: true}
	cardTyped = scene{card: true, unsent: true}
)

func TestFocusStaysWithTheInputForAPauseAfterEachKey(t *testing.T) {
	var f focus
	f.press(moment(0))
	for _, step := range []struct {
		at     int
		press  bool
		onCard bool
	}{
		{at: 10}, {at: 1499}, {at: 1499, press: true}, {at: 1500}, {at: 2998}, {at: 2999, onCard: true},
	} {
		f.settle(moment(step.at), cardUp)
		if f.onCard != step.onCard {
			t.Fatalf("at %d ms the card has the keys: %v", step.at, f.onCard)
		}
		if step.press {
			f.press(moment(step.at))
		}
	}
}

func TestFocusStaysWithTheInputThatHoldsText(t *testing.T) {
	var f focus
	f.settle(moment(3_600_000), cardTyped)
	if f.onCard {
		t.Error("the card took the keys from unsent text")
	}
	f.settle(moment(3_600_001), cardUp)
	if !f.onCard {
		t.Error("the card did not get the keys of an idle input")
	}
}

func TestFocusTakesEnterOnlyWhenTheCardCanHaveBeenRead(t *testing.T) {
	for how, free := range map[handover]bool{afterPause: false, byTab: false, fromCard: false, asAsked: true} {
		var f focus
		f.toCard(moment(0), how)
		if got := f.takesEnter(moment(0)); got != free {
			t.Errorf("handover %d: at once %v", how, got)
		}
		if got := f.takesEnter(moment(599)); got != free {
			t.Errorf("handover %d: after 599 ms %v", how, got)
		}
		if !f.takesEnter(moment(600)) {
			t.Errorf("handover %d: not after 600 ms", how)
		}
		f.toInput()
		if f.takesEnter(moment(10_000)) {
			t.Errorf("handover %d: a card without the keys takes Enter", how)
		}
	}
}

func TestFocusTakesAHastyKeyForTheInputOnlyWhenTheCardCameByItself(t *testing.T) {
	for how, early := range map[handover]bool{afterPause: true, byTab: false, fromCard: false, asAsked: false} {
		var f focus
		f.toCard(moment(0), how)
		if got := f.early(moment(599)); got != early {
			t.Errorf("handover %d: after 599 ms %v", how, got)
		}
		if f.early(moment(600)) {
			t.Errorf("handover %d: after 600 ms", how)
		}
	}
}

func TestFocusGoesBackToTheInputWithTheLastCard(t *testing.T) {
	var f focus
	f.toCard(moment(0), byTab)
	f.settle(moment(1), scene{})
	if f.onCard {
		t.Error("the keys stay with a card that is gone")
	}
}

func TestFocusWakesUpWhenARuleChangesItsMind(t *testing.T) {
	var f focus
	f.press(moment(0))
	if _, ok := f.next(moment(1), scene{}); ok {
		t.Error("it wakes up without a card")
	}
	if _, ok := f.next(moment(1), cardTyped); ok {
		t.Error("it wakes up although only a key can change anything")
	}
	due, ok := f.next(moment(1), cardUp)
	if !ok || !due.Equal(moment(1500)) {
		t.Fatalf("the next moment is %v, %v", due, ok)
	}
	f.settle(due, cardUp)
	if due, ok = f.next(due, cardUp); !ok || !due.Equal(moment(2100)) {
		t.Errorf("the next moment is %v, %v", due, ok)
	}
	if _, ok := f.next(due, cardUp); ok {
		t.Error("it wakes up again and again")
	}
}
