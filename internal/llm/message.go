package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"keen/internal/tools"
)

// Role says who speaks in a [Message].
type Role string

// The roles of canonical history. Tool results have no role of their own:
// they live in the assistant message that asked for them.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one entry of canonical history: provider-neutral, and the form in
// which sessions store a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// ToolActivities are the calls of an assistant message, in the order
	// they were made. Each stands at its TextOffset in Content.
	ToolActivities []HistoricalToolActivity `json:"tool_activities,omitempty"`
	// Compaction is set on the synthetic user message that a compaction
	// left, nil elsewhere. Content is then the wrapper made from it; the
	// parts are kept so that nobody has to parse them out of the text.
	Compaction *CompactedContext `json:"compaction,omitempty"`
	// Attachments stand beside a user message in a request, behind its text
	// and never in it: Content stays exactly what the user or a compaction
	// said.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Nudge marks a user message that Keen wrote by itself to make the model
	// go on. It is never taken for the user's latest message.
	Nudge bool `json:"nudge,omitempty"`
}

// CompactedContext is what a compaction kept.
type CompactedContext struct {
	// Summary is the compaction model's text, before tags are neutralised.
	Summary string `json:"summary"`
	// Task is the most recent user message at that time, verbatim. It is
	// empty after a manual compaction, which retains no task.
	Task string `json:"task,omitempty"`
}

// HistoricalToolActivity is one tool call of an assistant message with what
// became of it.
type HistoricalToolActivity struct {
	// TextOffset is the number of bytes of the message's Content that were
	// said before this call: 0 to len(Content), never decreasing.
	TextOffset int `json:"text_offset"`
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Input is the call's JSON object.
	Input json.RawMessage `json:"input,omitempty"`
	// Status says how the call ended.
	Status tools.Status `json:"status"`
	// ExitCode is the exit code of a command, or nil.
	ExitCode *int `json:"exit_code,omitempty"`
	// Summary is a short phrase for the screen, such as "120 lines".
	Summary string `json:"summary,omitempty"`
	// DurationMS is how long the call took, in milliseconds.
	DurationMS int64 `json:"duration_ms,omitempty"`

	// HasRawOutput says that RawOutput holds what the tool returned, which
	// may be empty. Both exist only in memory, while a turn runs or after it
	// was interrupted: they never reach JSON.
	HasRawOutput bool `json:"-"`
	// RawOutput is the output or the error payload as the model read it.
	RawOutput string `json:"-"`
}

// Activity makes the record of a finished call. offset is the number of bytes
// of text that the step said before it.
func Activity(call tools.Call, result tools.Result, offset int) HistoricalToolActivity {
	return HistoricalToolActivity{
		TextOffset:   offset,
		Tool:         call.Name,
		Input:        slices.Clone(call.Input),
		Status:       result.Status,
		ExitCode:     cloneInt(result.ExitCode),
		Summary:      result.Display.Summary,
		DurationMS:   result.Duration.Round(time.Millisecond).Milliseconds(),
		HasRawOutput: true,
		RawOutput:    result.Output,
	}
}

// Clone returns a deep copy, transient raw output included.
func (m Message) Clone() Message {
	if m.ToolActivities != nil {
		activities := make([]HistoricalToolActivity, len(m.ToolActivities))
		for i, a := range m.ToolActivities {
			activities[i] = a.Clone()
		}
		m.ToolActivities = activities
	}
	if m.Compaction != nil {
		c := *m.Compaction
		m.Compaction = &c
	}
	m.Attachments = slices.Clone(m.Attachments)
	return m
}

// Clone returns a deep copy, transient raw output included.
func (a HistoricalToolActivity) Clone() HistoricalToolActivity {
	a.Input = slices.Clone(a.Input)
	a.ExitCode = cloneInt(a.ExitCode)
	return a
}

// inOrder visits what an assistant message said and did, in order: the text
// before each group of calls with the group, and the text after the last one
// without. Damaged offsets are put right.
func (m Message) inOrder(visit func(text string, calls []HistoricalToolActivity)) {
	said := 0
	for i := 0; i < len(m.ToolActivities); {
		offset := min(max(m.ToolActivities[i].TextOffset, said), len(m.Content))
		group := i + 1
		for group < len(m.ToolActivities) && m.ToolActivities[group].TextOffset <= offset {
			group++
		}
		visit(m.Content[said:offset], m.ToolActivities[i:group])
		said, i = offset, group
	}
	visit(m.Content[said:], nil)
}

// CloneMessages returns a deep copy of history, transient raw output included.
func CloneMessages(history []Message) []Message {
	if history == nil {
		return nil
	}
	clone := make([]Message, len(history))
	for i, m := range history {
		clone[i] = m.Clone()
	}
	return clone
}

// WithoutRawOutput returns a deep copy of history without the transient raw
// output: the form in which a completed turn is remembered.
func WithoutRawOutput(history []Message) []Message {
	clone := CloneMessages(history)
	for i := range clone {
		for j := range clone[i].ToolActivities {
			clone[i].ToolActivities[j].HasRawOutput = false
			clone[i].ToolActivities[j].RawOutput = ""
		}
	}
	return clone
}

// NormalizeInput turns the arguments that a model wrote for a call into a
// valid JSON object. Nothing at all is an empty object. What is no JSON object
// is kept under the key [InvalidInputKey], so that the call can be shown,
// stored and replayed on every wire, and the registry can refuse it.
func NormalizeInput(raw string) json.RawMessage {
	trimmed := bytes.TrimSpace([]byte(raw))
	if len(trimmed) == 0 {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	wrapped, err := json.Marshal(map[string]string{InvalidInputKey: raw})
	if err != nil { // A map of strings always marshals.
		return json.RawMessage("{}")
	}
	return wrapped
}

// InvalidInputKey is the key under which [NormalizeInput] keeps arguments that
// are no JSON object.
const InvalidInputKey = tools.InvalidInputKey

func cloneInt(p *int) *int {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
