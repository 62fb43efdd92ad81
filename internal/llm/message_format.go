package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"keen/internal/llm/compaction"
	"keen/internal/tools"
)

// entryKind says what an [entry] is.
type entryKind int

const (
	entryUser entryKind = iota
	entryAssistant
	entryResults
)

// entry is one piece of a request, provider-neutral. The entries of a history
// keep the order every provider demands: they start with a user entry, user
// and assistant entries alternate, an assistant entry with calls is followed
// by a results entry that answers each of them in call order, and the last
// entry is no assistant entry.
type entry struct {
	kind    entryKind
	text    string
	calls   []tools.Call
	results []tools.Result
}

// formatHistory turns canonical history into entries. Call ids are made from
// positions, so equal histories make byte-equal requests.
func formatHistory(history []Message) []entry {
	var f formatter
	last := lastUserIndex(history)
	for i, m := range history {
		switch m.Role {
		case RoleUser:
			f.user(userText(m, i < last))
		case RoleAssistant:
			f.assistant(m)
		case RoleSystem: // The system prompt travels apart.
		}
	}
	f.close()
	return f.entries
}

// userText is what a user message says in a request. The wrapper of a
// compaction claims to hold the most recent user message; where a newer one
// follows, it says that it was so then. Attachments stand behind the text.
func userText(m Message, superseded bool) string {
	text := m.Content
	if m.Compaction != nil && superseded {
		text = compaction.Superseded(text)
	}
	return withAttachments(text, m.Attachments)
}

// lastUserIndex returns the index of the most recent message that the user
// wrote, or the compaction that retains it, and -1 when there is none.
func lastUserIndex(history []Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == RoleUser && !history[i].Nudge {
			return i
		}
	}
	return -1
}

type formatter struct {
	entries []entry
	calls   int
}

func (f *formatter) last() *entry {
	if len(f.entries) == 0 {
		return nil
	}
	return &f.entries[len(f.entries)-1]
}

// user adds user text. Two user messages in a row, left by a turn that failed
// before it said anything, are joined: not every server takes both.
func (f *formatter) user(text string) {
	if text == "" {
		return
	}
	if e := f.last(); e != nil && e.kind == entryUser {
		e.text += "\n\n" + text
		return
	}
	if e := f.last(); e != nil && e.kind == entryResults {
		// Several providers refuse results and a message in one turn of the
		// user, and the roles have to alternate.
		f.entries = append(f.entries, entry{kind: entryAssistant, text: interruptedMark})
	}
	f.entries = append(f.entries, entry{kind: entryUser, text: text})
}

// assistant adds what one assistant message said and did, in order: the text
// before each group of calls, the calls, their results.
func (f *formatter) assistant(m Message) { m.inOrder(f.step) }

func (f *formatter) step(text string, activities []HistoricalToolActivity) {
	if strings.TrimSpace(text) == "" && len(activities) == 0 {
		return
	}
	if len(f.entries) == 0 {
		f.user("(The conversation starts with the assistant.)")
	}
	if e := f.last(); e.kind == entryAssistant {
		// Text after text: the same speaker goes on.
		e.text += text
	} else {
		f.entries = append(f.entries, entry{kind: entryAssistant, text: text})
	}
	if len(activities) == 0 {
		return
	}
	results := make([]tools.Result, 0, len(activities))
	e := f.last()
	for _, a := range activities {
		f.calls++
		id := fmt.Sprintf("call_%06d", f.calls)
		input := a.Input
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		e.calls = append(e.calls, tools.Call{ID: id, Name: a.Tool, Input: input})
		results = append(results, tools.Result{
			CallID: id, Tool: a.Tool, Status: a.Status, ExitCode: a.ExitCode, Output: historicalToolResult(a),
		})
	}
	f.entries = append(f.entries, entry{kind: entryResults, results: results})
}

// close makes sure that the last word is not the assistant's: models of the
// Claude 4.6 generation reject such a request as a prefill.
func (f *formatter) close() {
	if e := f.last(); e != nil && e.kind == entryAssistant {
		f.user(nudgeContinue)
	}
}

// historicalToolResult is what a request says of a past call: the raw output
// where it is still in memory, and how the call ended where it is not.
func historicalToolResult(a HistoricalToolActivity) string {
	if a.HasRawOutput {
		return a.RawOutput
	}
	compact := struct {
		Status   tools.Status `json:"status"`
		ExitCode *int         `json:"exit_code,omitempty"`
		Summary  string       `json:"summary,omitempty"`
		Note     string       `json:"note"`
	}{a.Status, a.ExitCode, a.Summary, "output of an earlier turn, not kept; run the tool again if you need it"}
	text, err := json.Marshal(compact)
	if err != nil { // Strings and numbers always marshal.
		return string(a.Status)
	}
	return string(text)
}

// interruptedMark stands for an answer that is missing between tool results and
// a message of the user: the turn was stopped, or the answer was cut.
const interruptedMark = "(My answer is missing here: it was interrupted or cut off.)"

// nudgeContinue ends a request that would otherwise end with the assistant.
const nudgeContinue = "Continue."
