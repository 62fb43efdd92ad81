package llm

import (
	"strings"

	"keen/internal/llm/compaction"
)

// compactionOptions is what compaction requests are made from, automatic and
// manual ones alike.
type compactionOptions struct {
	// History is canonical history, raw outputs included. System messages
	// in it are left out. It is not changed.
	History []Message
	// Mode says who asked.
	Mode compaction.Mode
	// Hint is what the user wants the summary to focus on; it may be empty
	// and is only looked at in manual mode.
	Hint string
	// Budget is the most that one whole request may have, system prompt
	// included, in tokens of [token.Estimate].
	Budget int
}

// planCompaction sizes the requests for a summary of a history. Errors are
// those of [compaction.NewPlan].
func planCompaction(o compactionOptions) (*compaction.Plan, error) {
	return compaction.NewPlan(conversationOf(o.History), compaction.Options{
		Mode: o.Mode, Hint: o.Hint, Budget: o.Budget,
		Prompt: func(hint string) string { return BuildCompactionPrompt(o.Mode, hint) },
	})
}

// compactionMessages makes the messages of a part of a plan.
func compactionMessages(p *compaction.Plan, part int, soFar, complaint string) []Message {
	system, text := p.Request(part, soFar, complaint)
	return []Message{{Role: RoleSystem, Content: system}, {Role: RoleUser, Content: text}}
}

// conversationOf is a history as a compaction sees it.
func conversationOf(history []Message) []compaction.Entry {
	var conversation []compaction.Entry
	for _, m := range history {
		switch m.Role {
		case RoleUser:
			conversation = append(append(conversation, entryOfUser(m)), attachedTo(m)...)
		case RoleAssistant:
			m.inOrder(func(text string, activities []HistoricalToolActivity) {
				conversation = append(conversation, compaction.Entry{
					Speaker: compaction.SpeakerAssistant, Text: text, Calls: callsOf(activities),
				})
			})
		case RoleSystem: // The agent's system prompt is kept apart.
		}
	}
	return conversation
}

func entryOfUser(m Message) compaction.Entry {
	switch {
	case m.Nudge:
		return compaction.Entry{Speaker: compaction.SpeakerKeen, Text: m.Content}
	case m.Compaction != nil:
		return compaction.Entry{Speaker: compaction.SpeakerUser, Summary: m.Compaction.Summary, Text: m.Compaction.Task}
	}
	return compaction.Entry{Speaker: compaction.SpeakerUser, Text: m.Content}
}

// attachedTo is what stood beside a message of the user, for the summary to
// take from. What stood beside an earlier summary is attached again instead.
func attachedTo(m Message) []compaction.Entry {
	if m.Compaction != nil {
		return nil
	}
	var entries []compaction.Entry
	for _, a := range m.Attachments {
		entries = append(entries, compaction.Entry{
			Speaker: compaction.SpeakerKeen, Text: "Attached to the message of the user: " + a.Name + "\n\n" + a.Text,
		})
	}
	return entries
}

func callsOf(activities []HistoricalToolActivity) []compaction.Call {
	calls := make([]compaction.Call, 0, len(activities))
	for _, a := range activities {
		calls = append(calls, compaction.Call{
			Tool: a.Tool, Input: a.Input, Status: a.Status, ExitCode: a.ExitCode, Output: outputOf(a),
		})
	}
	return calls
}

// outputOf returns the raw output of a call where it is in memory, and what
// else is known where it is not.
func outputOf(a HistoricalToolActivity) string {
	switch {
	case a.HasRawOutput:
		return a.RawOutput
	case strings.TrimSpace(a.Summary) != "":
		return a.Summary + " (output not kept)"
	}
	return "(output not kept)"
}
