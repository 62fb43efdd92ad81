package simulator

import "strings"

// defaultSummaryTokens is the size of a summary that nobody set.
const defaultSummaryTokens = 400

// Summary is a summary as a well-behaved model writes it.
type Summary struct {
	// Goal, Progress and Next are a line or a few each.
	Goal, Progress, Next string
	// Done lists what was done, oldest first; empty means nothing.
	Done []string
}

// Text writes the summary in at most limit tokens of [CountTokens]. The latest
// of what was done is listed, as far as it fits; the rest is always there.
func (s Summary) Text(limit int) string {
	write := func(done []string) string {
		var b strings.Builder
		section := func(heading, text string) {
			if text == "" {
				text = "(none)"
			}
			b.WriteString("## " + heading + "\n" + text + "\n\n")
		}
		section("Goal", s.Goal)
		section("Progress", s.Progress)
		section("Commands and results", strings.Join(done, "\n"))
		section("Immediate next action", s.Next)
		return strings.TrimRight(b.String(), "\n")
	}
	left := limit - CountTokens(write(nil))
	from := len(s.Done)
	var kept []string
	for from > 0 {
		line := "- " + strings.ReplaceAll(s.Done[from-1], "\n", " ")
		if left -= CountTokens(line) + 1; left < 0 {
			break
		}
		from--
		kept = append(kept, line)
	}
	for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
		kept[i], kept[j] = kept[j], kept[i]
	}
	return write(kept)
}
