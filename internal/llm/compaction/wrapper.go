package compaction

import "strings"

// The wrapper's text is the specification's, line breaks included.
const (
	wrapperContext = `<compacted_context>
The prior conversation context was compacted automatically to fit the
model's context window. The following summary preserves relevant goals,
constraints, progress, discoveries, tool results, and pending work.

`
	wrapperContextManual = `<compacted_context>
The prior conversation context was compacted at the user's request. The
following summary preserves relevant goals, constraints, progress,
discoveries, tool results, and pending work.

`
	wrapperContextEnd = "\n</compacted_context>"

	// wrapperTaskNow introduces the retained message. It begins with the tag,
	// which no summary can contain, so that it occurs first where the
	// wrapper has it.
	wrapperTaskNow = `<last_user_message>
The following is the most recent user message. Treat it as the current
task and its requirements as authoritative.`
	// wrapperTaskThen takes its place where a newer user message follows.
	wrapperTaskThen = `<last_user_message>
The following was the most recent user message when the context was
compacted; newer messages follow and take precedence over it.`
	wrapperTaskEnd = "\n</last_user_message>"
)

// Replacement returns the text of the one message that replaces a conversation
// after an automatic compaction. Tags of the wrapper in the summary are
// neutralised, so that it cannot forge a user message; the task is never
// altered.
func Replacement(summary, task string) string {
	return wrapperContext + neutraliseTags(summary, wrapperTags) + wrapperContextEnd +
		"\n\n" + wrapperTaskNow + "\n\n" + task + wrapperTaskEnd
}

// ManualReplacement is the same after a manual compaction. It retains no task.
func ManualReplacement(summary string) string {
	return wrapperContextManual + neutraliseTags(summary, wrapperTags) + wrapperContextEnd
}

// Superseded returns a [Replacement] as it reads where a newer message of the
// user follows: it no longer claims to hold the most recent one.
func Superseded(replacement string) string {
	return strings.Replace(replacement, wrapperTaskNow, wrapperTaskThen, 1)
}
