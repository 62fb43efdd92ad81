package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

func TestWeakPoint02_TurnAfterAnInterruptIsCompactedWithThePendingWork(t *testing.T) {
	a := small()
	a.script = scripted(reads(20, 1700)...)
	c := newFakeClient(t, a)
	history := []Message{
		user(task),
		{Role: RoleAssistant, ToolActivities: []HistoricalToolActivity{
			{Tool: "read_file", Input: json.RawMessage(`{"path":"pending.go"}`), Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: "PENDING-WORK"},
		}},
		user("continue"),
	}
	events := runTurn(t, c, registry(), history...)
	wantDone(t, events)
	_, nested := a.sent()
	if len(nested) == 0 {
		t.Fatal("nothing was compacted")
	}
	if text := nested[0].text(); !strings.Contains(text, "PENDING-WORK") || !strings.Contains(text, "pending.go") || !strings.Contains(text, task) {
		t.Error("the first compaction lacks the work of the interrupted turn")
	}
}

func TestWeakPoint22_EachOverflowOfALongTurnIsRecovered(t *testing.T) {
	a := mid()
	// So small that no limit is learned from the rejections.
	overflows := map[int]bool{2: true, 6: true, 10: true}
	a.script = func(r fakeRequest) fakeReply {
		switch {
		case r.Compaction:
			return say(goodSummary)
		case overflows[r.Parent]:
			return fail(apierror.KindContextOverflow, "too large")
		case r.Parent < 14:
			return call("", readCall("a", 300))
		}
		return say("done")
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionApplied); n != len(overflows) {
		t.Errorf("%d compactions, want one for each of the %d overflows", n, len(overflows))
	}
}

func TestWeakPoint13_OneBatchThatOvershootsIsRecovered(t *testing.T) {
	a := mid()
	a.hard = a.window
	var batch []tools.Call
	for range 10 {
		batch = append(batch, readCall("part", 20000))
	}
	a.script = scripted(call("", readCall("first", 45000)), call("", batch...), say("done"))
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	for i, r := range a.requests {
		if r.Tokens+r.Output > a.window {
			t.Errorf("request %d has %d + %d tokens", i+1, r.Tokens, r.Output)
		}
	}
}
