package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

// newStore returns a store of an existing working directory.
func newStore(t testing.TB) *session.Store {
	t.Helper()
	s, err := session.NewStore(filepath.Join(t.TempDir(), "state"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t testing.TB, s *session.Store) *session.Log {
	t.Helper()
	l, err := s.Create(session.CreateOptions{KeenVersion: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func open(t testing.TB, s *session.Store, id string) *session.Log {
	t.Helper()
	l, err := s.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func appendEvents(t testing.TB, l *session.Log, events ...session.Event) {
	t.Helper()
	if err := l.Append(events...); err != nil {
		t.Fatal(err)
	}
}

func closeLog(t testing.TB, l *session.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, path string) []session.Event {
	t.Helper()
	events, rec, err := session.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if rec.String() != "" {
		t.Fatalf("unexpected damage: %s", rec)
	}
	return events
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// withoutTimes compares events and items by all but their time.
var withoutTimes = cmp.Options{
	cmpopts.IgnoreFields(session.Event{}, "Time"),
	cmpopts.IgnoreFields(session.ReplayItem{}, "Time"),
}

func diff(t testing.TB, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, withoutTimes); d != "" {
		t.Errorf("mismatch (-want +got):\n%s", d)
	}
}

func user(text string) session.Event {
	return session.Event{Kind: session.KindUserMessage, Text: text}
}

func turn(outcome session.Outcome, messages ...llm.Message) session.Event {
	return session.Event{Kind: session.KindAssistantTurn, Outcome: outcome, Messages: messages}
}

func automaticCompaction(summary, task string) session.Event {
	return session.Event{Kind: session.KindCompactionApplied, Messages: []llm.Message{wrapper(summary, task)}}
}

func userMessage(text string) llm.Message { return llm.Message{Role: llm.RoleUser, Content: text} }

func nudge(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Content: text, Nudge: true}
}

func wrapper(summary, task string) llm.Message {
	return llm.Message{
		Role:       llm.RoleUser,
		Content:    "<compacted_context>\n" + summary + "\n</compacted_context>\n" + task,
		Compaction: &llm.CompactedContext{Summary: summary, Task: task},
	}
}

// step is an assistant message that says text and then calls tools.
func step(text string, activities ...llm.HistoricalToolActivity) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Content: text, ToolActivities: activities}
}

func readCall(offset int, raw string) llm.HistoricalToolActivity {
	return llm.HistoricalToolActivity{
		TextOffset: offset, Tool: "read_file", Input: json.RawMessage(`{"path":"a.go"}`),
		Status: tools.StatusSuccess, Summary: "120 lines", HasRawOutput: raw != "", RawOutput: raw,
	}
}

// marker is a string that must not get where it does not belong.
var marker = "MARKER-" + strings.Repeat("0123456789", 20)
