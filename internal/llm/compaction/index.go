package compaction

import (
	"fmt"
	"slices"
	"strings"

	"keen/internal/llm/token"
	"keen/internal/tools"
)

// activityIndex lists what was read, changed and run. It stands beside the
// transcript and survives even where the content of the calls was clipped, so
// that nothing has to be discovered again.
type activityIndex struct {
	entries []activityEntry
}

type activityEntry struct {
	kind    tools.ActivityKind
	subject string
	// outcome says how the latest such call ended unless it succeeded.
	outcome string
}

// note adds a call.
func (x *activityIndex) note(c Call) {
	activity := tools.Describe(c.Tool, c.Input)
	if activity.Subject == "" || !slices.ContainsFunc(indexSections, func(s indexSection) bool { return s.kind == activity.Kind }) {
		return
	}
	e := activityEntry{kind: activity.Kind, subject: activity.Subject}
	switch {
	case c.ExitCode != nil && *c.ExitCode != 0:
		e.outcome = fmt.Sprintf(" (exit code %d)", *c.ExitCode)
	case c.Status != tools.StatusSuccess:
		e.outcome = fmt.Sprintf(" (%s)", c.statusText())
	}
	x.entries = append(x.entries, e)
}

type indexSection struct {
	kind  tools.ActivityKind
	title string
}

// indexSections are the sections of an index, the most important first.
var indexSections = []indexSection{
	{tools.ActivityWrite, "Files changed"},
	{tools.ActivityRead, "Files read"},
	{tools.ActivityCommand, "Commands run"},
}

// maxSubject bounds one line of the index, in tokens.
const maxSubject = 96

// render returns the index in at most about room tokens, empty when there is
// nothing in it. Each subject is listed once, in the order of the latest calls;
// where there is no room the oldest are left out, commands before files.
func (x *activityIndex) render(room int) string {
	var b strings.Builder
	for _, s := range indexSections {
		lines, left := x.section(s.kind, &room)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s, latest last:\n", s.title)
		if left > 0 {
			fmt.Fprintf(&b, "- (%d older ones left out)\n", left)
		}
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

// sectionTitle covers the title of a section and the note on what is left out,
// in tokens.
const sectionTitle = 20

// section returns the lines of one kind, the latest last, and how many have no
// room. It takes what it uses off room.
func (x *activityIndex) section(kind tools.ActivityKind, room *int) (lines []string, left int) {
	seen := make(map[string]bool)
	*room -= sectionTitle
	for _, e := range slices.Backward(x.entries) {
		if e.kind != kind || seen[e.subject] {
			continue
		}
		seen[e.subject] = true
		line := "- " + oneLine(e.subject) + e.outcome + "\n"
		tokens := token.Estimate(line)
		if left > 0 || tokens > *room {
			left++
			continue
		}
		*room -= tokens
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		*room += sectionTitle
	}
	slices.Reverse(lines)
	return lines, left
}

// oneLine returns a subject on one line of bounded size, tags neutralised.
func oneLine(subject string) string {
	subject = strings.Join(strings.Fields(neutraliseTags(subject, transcriptTags)), " ")
	tokens := token.Estimate(subject)
	if tokens <= maxSubject {
		return subject
	}
	head, tail := token.HeadTail(subject, maxSubject, tokens)
	return head + " [...] " + tail
}
