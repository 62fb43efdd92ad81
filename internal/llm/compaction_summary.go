package llm

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// wrapperTags are the names of the wrapper's tags.
var wrapperTags = []string{"compacted_context", "last_user_message"}

// newCompactedMessage makes the one message that replaces a history after an
// automatic compaction. Tags of the wrapper in the summary are neutralised, so
// that it cannot forge a user message; the task is never altered.
func newCompactedMessage(summary, task string) Message {
	content := wrapperContext + neutraliseTags(summary, wrapperTags) + wrapperContextEnd +
		"\n\n" + wrapperTaskNow + "\n\n" + task + wrapperTaskEnd
	return Message{Role: RoleUser, Content: content, Compaction: &CompactedContext{Summary: summary, Task: task}}
}

// newManualReplacement makes the one message that replaces a history after a
// manual compaction. It retains no task.
func newManualReplacement(summary string) Message {
	content := wrapperContextManual + neutraliseTags(summary, wrapperTags) + wrapperContextEnd
	return Message{Role: RoleUser, Content: content, Compaction: &CompactedContext{Summary: summary}}
}

// retainedTask returns the user's latest words, of a wrapper those it retains.
// It is not ok when there are none: no user message, an empty one, or a manual
// compaction that nothing of the user follows.
func retainedTask(history []Message) (task string, ok bool) {
	i := lastUserIndex(history)
	if i < 0 {
		return "", false
	}
	task = history[i].Content
	if c := history[i].Compaction; c != nil {
		task = c.Task
	}
	return task, strings.TrimSpace(task) != ""
}

// neutraliseTags returns s with every tag of one of the names made plain text:
// its "<" becomes "&lt;". Opening and closing tags are found in any case, with
// attributes, with spaces or invisible characters in them, and with other
// separators for the underscore. Names are in lower case.
func neutraliseTags(s string, names []string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		next := strings.IndexByte(s[i:], '<')
		if next < 0 {
			break
		}
		i += next + 1
		if !startsTag(s[i:], names) {
			continue
		}
		b.WriteString(s[done : i-1])
		b.WriteString("&lt;")
		done = i
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// startsTag reports whether s, which follows a "<", continues with a slash or
// not and one of the names.
func startsTag(s string, names []string) bool {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r == '/' || r == '\\' || isBlank(r) })
	for _, name := range names {
		if hasTagName(s, name) {
			return true
		}
	}
	return false
}

func hasTagName(s, name string) bool {
	for len(name) > 0 {
		if name[0] == '_' {
			rest := strings.TrimLeftFunc(s, func(r rune) bool { return r == '_' || r == '-' || isBlank(r) })
			if len(rest) == len(s) {
				return false
			}
			s, name = rest, name[1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case size == 0:
			return false
		case unicode.Is(unicode.Cf, r): // Invisible, so it does not count.
		case unicode.ToLower(r) == rune(name[0]):
			name = name[1:]
		default:
			return false
		}
		s = s[size:]
	}
	return true
}

func isBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// UnusableSummaryError says why a summary cannot replace a history.
type UnusableSummaryError struct {
	// Reason is a clause about the summary, such as "it is empty".
	Reason string
}

// Error returns the reason.
func (e *UnusableSummaryError) Error() string {
	return "the summary is unusable: " + e.Reason
}

// minSummarySubstance is the least a summary must say beside its headings, in
// letters and digits: less than a short sentence is a template returned as it
// was, or a refusal.
const minSummarySubstance = 40

// checkSummary reports whether a summary can replace a history of replaced
// tokens by a message of replacement tokens. The error is an
// [*UnusableSummaryError].
func checkSummary(summary string, replaced, replacement int) error {
	if strings.TrimSpace(summary) == "" {
		return &UnusableSummaryError{Reason: "it is empty"}
	}
	if !hasSubstance(summary) {
		return &UnusableSummaryError{Reason: "it has headings but says nothing"}
	}
	if replacement >= replaced {
		return &UnusableSummaryError{Reason: fmt.Sprintf(
			"it is not smaller than what it replaces (%d tokens instead of %d); be shorter", replacement, replaced)}
	}
	return nil
}

// hasSubstance reports whether a summary has minSummarySubstance letters and
// digits that are no heading and no placeholder.
func hasSubstance(summary string) bool {
	n := 0
	for line := range strings.Lines(summary) {
		for _, r := range lineSubstance(line) {
			if unicode.IsLetter(r) || unicode.IsNumber(r) {
				n++
			}
		}
		if n >= minSummarySubstance {
			return true
		}
	}
	return false
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6}\s.*|\*\*[^*]*\*\*:?|__[^_]*__:?|[^.:]*:)$`)
	listMarker  = regexp.MustCompile(`^([-*+•>]|\d+[.)]|\[[ xX]?\])\s+`)
	placeholder = regexp.MustCompile(`(?i)^(none|nothing|empty|n/?a|not applicable|unknown|tbd|null|nil)?( yet| so far)?$`)
	// nothingUnder is a label such as "Done:" with a placeholder behind it.
	nothingUnder = regexp.MustCompile(`(?i)[\pL /*_-]{1,40}:[\s*_(\[]*(none|nothing|empty|n/a|not applicable|unknown|tbd)\b`)
)

// lineSubstance returns what a line of a summary says: the line without its
// list marker, or nothing when it is a heading or a placeholder.
func lineSubstance(line string) string {
	line = listMarker.ReplaceAllString(strings.TrimSpace(line), "")
	if headingLine.MatchString(line) {
		return ""
	}
	bare := strings.TrimFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if placeholder.MatchString(bare) || isSectionName(bare) {
		return ""
	}
	return nothingUnder.ReplaceAllString(line, "")
}

// isSectionName reports whether s is a heading that the prompt asks for,
// without its number signs.
func isSectionName(s string) bool {
	return strings.Contains(strings.ToLower(compactionPrompt), "\n## "+strings.ToLower(s)+"\n")
}
