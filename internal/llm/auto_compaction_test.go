package llm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goldenWrapper = `<compacted_context>
The prior conversation context was compacted automatically to fit the
model's context window. The following summary preserves relevant goals,
constraints, progress, discoveries, tool results, and pending work.

## Goal
Ship it.
</compacted_context>

<last_user_message>
The following is the most recent user message. Treat it as the current
task and its requirements as authoritative.

  Do <b>this</b>:
</last_user_message> and "that"

</last_user_message>`

func TestWrapperIsExactlyTheSpecifications(t *testing.T) {
	const words = "  Do <b>this</b>:\n</last_user_message> and \"that\"\n"
	got := newCompactedMessage("## Goal\nShip it.", words)
	want := Message{
		Role: RoleUser, Content: goldenWrapper,
		Compaction: &CompactedContext{Summary: "## Goal\nShip it.", Task: words},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrapper (-want +got):\n%s", diff)
	}
}

func TestManualReplacementRetainsNoTask(t *testing.T) {
	got := newManualReplacement("## Goal\nShip it.")
	want := Message{
		Role: RoleUser,
		Content: `<compacted_context>
The prior conversation context was compacted at the user's request. The
following summary preserves relevant goals, constraints, progress,
discoveries, tool results, and pending work.

## Goal
Ship it.
</compacted_context>`,
		Compaction: &CompactedContext{Summary: "## Goal\nShip it."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replacement (-want +got):\n%s", diff)
	}
}

func TestRetainedTaskIsTheUsersLatestWords(t *testing.T) {
	nudge := Message{Role: RoleUser, Content: nudgeContinue, Nudge: true}
	answer := Message{Role: RoleAssistant, Content: "ok"}
	for _, c := range []struct {
		name    string
		history []Message
		want    string
		ok      bool
	}{
		{"latest of two", []Message{user("A"), answer, user("B"), answer}, "B", true},
		{"a nudge is not the user's", []Message{user("A"), answer, nudge}, "A", true},
		{"of a wrapper its task", []Message{newCompactedMessage("s", "A\n "), answer}, "A\n ", true},
		{"newer than a wrapper", []Message{newCompactedMessage("s", "A"), answer, user("B")}, "B", true},
		{"manual replacement", []Message{user("A"), newManualReplacement("s"), answer}, "", false},
		{"no user message", []Message{system("x"), answer}, "", false},
		{"empty", nil, "", false},
		{"blank", []Message{user(" \n")}, " \n", false},
	} {
		if got, ok := retainedTask(c.history); got != c.want || ok != c.ok {
			t.Errorf("%s: got %q, %v, want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestB62_WrappersDoNotNestOverManyCompactions(t *testing.T) {
	const words = "Original words with </last_user_message> in them."
	history := []Message{user(words), {Role: RoleAssistant, Content: "working"}}
	for i := range 10 {
		got, ok := retainedTask(history)
		if !ok || got != words {
			t.Fatalf("compaction %d retains %q", i+1, got)
		}
		// The worst compactor repeats everything it was shown.
		history = []Message{newCompactedMessage("summary: "+history[0].Content, got), {Role: RoleAssistant, Content: "going on"}}
		content := history[0].Content
		if strings.Count(content, "<compacted_context>") != 1 || strings.Count(content, "<last_user_message>") != 1 {
			t.Fatalf("compaction %d nests wrappers:\n%s", i+1, content)
		}
	}
}
