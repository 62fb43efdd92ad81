package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

func TestEveryFieldSurvivesStorage(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	code := 2
	at := time.Date(2031, 5, 1, 12, 0, 0, 123456789, time.UTC)
	want := []session.Event{
		{Kind: session.KindSessionRenamed, Time: at, Title: "name"},
		{Kind: session.KindUserMessage, Time: at, Text: "a <b> & \u2028 \x00 \"c\"\n"},
		{
			Kind: session.KindAssistantTurn, Time: at, Outcome: session.OutcomeError, Error: "no network",
			Usage: &llm.Usage{InputTokens: 5, OutputTokens: 6, ReasoningTokens: 1, CacheReadTokens: 2, CacheWriteTokens: 3},
			Model: "model-1", DurationMS: 1500,
			Messages: []llm.Message{
				step("text", llm.HistoricalToolActivity{
					TextOffset: 4, Tool: "bash", Input: json.RawMessage(`{"n":12345678901234567890,"s":"\u003c"}`),
					Status: tools.StatusError, ExitCode: &code, Summary: "1 line", DurationMS: 7,
				}),
				nudge("go on"),
			},
		},
		{
			Kind: session.KindCompactionApplied, Time: at, Messages: []llm.Message{wrapper("sum", "task")},
			Status: session.StatusContextCompacted, Transcript: "sum", Usage: &llm.Usage{InputTokens: 1},
		},
		{Kind: session.KindCommand, Time: at, Text: "!ls", Output: "a\n", ExitCode: &code},
		{Kind: session.KindCleared, Time: at},
	}
	appendEvents(t, l, want...)
	got := load(t, l.Path())[1:]
	diff(t, got, want)
	for _, e := range got {
		if !e.Time.Equal(at) {
			t.Errorf("%s happened at %v", e.Kind, e.Time)
		}
	}
}

func TestAppendRefusesWhatCannotBeReadBack(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	before := readFile(t, l.Path())
	for name, e := range map[string]session.Event{
		"no kind":           {Text: "x"},
		"unknown kind":      {Kind: "mine"},
		"empty replacement": {Kind: session.KindCompactionApplied},
		"input that is no JSON": turn(session.OutcomeDone,
			step("", llm.HistoricalToolActivity{Tool: "bash", Input: json.RawMessage("{")})),
	} {
		if err := l.Append(user("fine"), e); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := l.Append(); err != nil {
		t.Errorf("an empty batch gives %v", err)
	}
	if !bytes.Equal(readFile(t, l.Path()), before) {
		t.Error("the file was changed")
	}
	closeLog(t, l)
	if err := l.Append(user("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed log gives %v", err)
	}
}

func TestAppendDoesNotChangeTheCallersEvents(t *testing.T) {
	l := create(t, newStore(t))
	events := []session.Event{user("x")}
	appendEvents(t, l, events...)
	if !events[0].Time.IsZero() {
		t.Errorf("the time became %v", events[0].Time)
	}
}

func TestAppendsOfSeveralGoroutinesAreWhole(t *testing.T) {
	l := create(t, newStore(t))
	const writers, each = 4, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d-%d", w, i)
				if err := l.Append(user(text), user(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	events := load(t, l.Path())[1:]
	if len(events) != writers*each*2 {
		t.Fatalf("%d events stored", len(events))
	}
	for pair := range slices.Chunk(events, 2) {
		if pair[0].Text != pair[1].Text {
			t.Errorf("batches are mixed: %s, %s", pair[0].Text, pair[1].Text)
		}
	}
}

func TestLinesOfAnyLengthLoad(t *testing.T) {
	l := create(t, newStore(t))
	long := strings.Repeat("x", 20<<20)
	appendEvents(t, l, user(long), user("after"))
	closeLog(t, l)
	events := load(t, l.Path())
	if len(events) != 3 || events[1].Text != long || events[2].Text != "after" {
		t.Errorf("%d events loaded", len(events))
	}
}

// B79: an attempt to compact that fails appends nothing. What the session does
// about it is to write nothing unless it is told to, opening included.
func TestAFailedCompactionLeavesTheFileAsItWas(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	appendEvents(t, l, user("task"))
	before := readFile(t, l.Path())
	if err := l.Append(turn(session.OutcomeCheckpoint, step("a")), session.Event{Kind: session.KindCompactionApplied}); err == nil {
		t.Error("a compaction without a replacement was taken")
	}
	closeLog(t, l)
	closeLog(t, open(t, s, l.ID()))
	if !bytes.Equal(readFile(t, l.Path()), before) {
		t.Error("the file was changed")
	}
}

// B80: work after a compaction that is interrupted is there on resume.
func TestAnInterruptAfterACompactionKeepsTheWorkSince(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	appendEvents(t, l, user("task"))
	appendEvents(t, l, turn(session.OutcomeCheckpoint, step("before")), automaticCompaction("sum", "task"))
	appendEvents(t, l, turn(session.OutcomeInterrupted, step("round one", readCall(9, "raw")), step("round two", readCall(9, "raw"))))
	closeLog(t, l)
	open(t, s, l.ID())
	diff(t, session.BuildConversation(load(t, l.Path())), []llm.Message{
		wrapper("sum", "task"), step("round one", readCall(9, "")), step("round two", readCall(9, "")),
	})
}

// B82: a resumed session starts from the replacement, and shows what was
// visible before it.
func TestAResumedSessionKeepsTheCompaction(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	appendEvents(t, l, user("task"))
	appendEvents(t, l, turn(session.OutcomeCheckpoint, step("before")), automaticCompaction("sum", "task"))
	appendEvents(t, l, turn(session.OutcomeDone, step("after")))
	closeLog(t, l)
	again := open(t, s, l.ID())
	appendEvents(t, again, user("next"))
	events := load(t, again.Path())
	diff(t, session.BuildConversation(events), []llm.Message{wrapper("sum", "task"), step("after"), userMessage("next")})
	diff(t, session.Replay(events), []session.ReplayItem{
		item(session.ReplayUser, "task"), item(session.ReplayText, "before"),
		item(session.ReplayText, "after"), item(session.ReplayUser, "next"),
	})
}

// B83: raw output never gets into the file, and a compaction adds little more
// than the turn and its replacement.
func TestRawOutputIsNeverStored(t *testing.T) {
	l := create(t, newStore(t))
	appendEvents(t, l, user("task"))
	before := len(readFile(t, l.Path()))
	raw := readCall(6, strings.Repeat(marker, 1000))
	checkpoint, compaction := turn(session.OutcomeCheckpoint, step("before", raw)), automaticCompaction("SUMMARY", "task")
	compaction.Messages = append(compaction.Messages, step("kept", raw))
	appendEvents(t, l, checkpoint, compaction)
	appendEvents(t, l, turn(session.OutcomeInterrupted, step("after", raw)))
	data := readFile(t, l.Path())
	if bytes.Contains(data, []byte("MARKER")) {
		t.Error("the file holds raw output")
	}
	if grown := len(data) - before; grown > 3000 {
		t.Errorf("the file grew by %d bytes", grown)
	}
	for _, e := range load(t, l.Path()) {
		if e.Kind == session.KindCompactionApplied {
			continue
		}
		if text, err := json.Marshal(e); err != nil || bytes.Contains(text, []byte("SUMMARY")) {
			t.Errorf("a %s event holds the private summary: %v", e.Kind, err)
		}
	}
}
