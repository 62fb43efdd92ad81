package compaction

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// UnusableError says why a summary cannot replace a history.
type UnusableError struct {
	// Reason is a clause about the summary, such as "it is empty".
	Reason string
}

// Error returns the reason.
func (e *UnusableError) Error() string {
	return "the summary is unusable: " + e.Reason
}

// minSummarySubstance is the least a summary must say beside its headings, in
// letters and digits: less than a short sentence is a template returned as it
// was, or a refusal.
const minSummarySubstance = 40

// Criteria are what a summary is measured by.
type Criteria struct {
	// Prompt is what the summary was asked for with. A heading of it says
	// nothing.
	Prompt string
	// Replaced and Replacement are the sizes of what the summary replaces and
	// of what replaces it, in tokens.
	Replaced, Replacement int
}

// Check reports whether a summary can replace a conversation. The error is an
// [*UnusableError].
func Check(summary string, c Criteria) error {
	if strings.TrimSpace(summary) == "" {
		return &UnusableError{Reason: "it is empty"}
	}
	if !hasSubstance(summary, c.Prompt) {
		return &UnusableError{Reason: "it has headings but says nothing"}
	}
	if c.Replacement >= c.Replaced {
		return &UnusableError{Reason: fmt.Sprintf(
			"it is not smaller than what it replaces (%d tokens instead of %d); be shorter", c.Replacement, c.Replaced)}
	}
	return nil
}

// hasSubstance reports whether a summary has minSummarySubstance letters and
// digits that are no heading and no placeholder.
func hasSubstance(summary, prompt string) bool {
	n := 0
	for line := range strings.Lines(summary) {
		for _, r := range lineSubstance(line, prompt) {
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
func lineSubstance(line, prompt string) string {
	line = listMarker.ReplaceAllString(strings.TrimSpace(line), "")
	if headingLine.MatchString(line) {
		return ""
	}
	bare := strings.TrimFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if placeholder.MatchString(bare) || isSectionName(bare, prompt) {
		return ""
	}
	return nothingUnder.ReplaceAllString(line, "")
}

// isSectionName reports whether s is a heading that the prompt asks for,
// without its number signs.
func isSectionName(s, prompt string) bool {
	return strings.Contains(strings.ToLower(prompt), "\n## "+strings.ToLower(s)+"\n")
}
