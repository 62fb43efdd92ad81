package llm

import (
	"fmt"
	"strings"

	"keen/internal/llm/compaction"
	"keen/internal/llm/token"
)

// Attachment is something that the model should have in view beside a message,
// such as the body of a skill or the list of what is left to do.
type Attachment struct {
	// Name says what it is, in lower case without spaces, such as
	// "skill:commit" or "todo".
	Name string `json:"name"`
	// Text is what the model reads.
	Text string `json:"text"`
}

// render writes an attachment as a request has it. Tags of Keen's own in the
// text are neutralised, so that no attachment can forge another one or a
// message of the user.
func (a Attachment) render() string {
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(`"<>&`, r) {
			return '-'
		}
		return r
	}, a.Name)
	return fmt.Sprintf("<keen_attachment name=%q>\n%s\n</keen_attachment>", name, strings.TrimRight(compaction.Quote(a.Text), "\n"))
}

// withAttachments is the text of a user message with what stands beside it.
func withAttachments(text string, attachments []Attachment) string {
	parts := make([]string, 0, len(attachments)+1)
	if text != "" {
		parts = append(parts, text)
	}
	for _, a := range attachments {
		parts = append(parts, a.render())
	}
	return strings.Join(parts, "\n\n")
}

// with returns m with the attachments beside it.
func (m Message) with(attachments []Attachment) Message {
	m.Attachments = attachments
	return m
}

// boundAttachments clips attachments to limit tokens in all, the largest
// first, and leaves out those without text.
func boundAttachments(attachments []Attachment, limit int) []Attachment {
	var kept []Attachment
	var sizes []int
	for _, a := range attachments {
		if strings.TrimSpace(a.Text) != "" {
			kept, sizes = append(kept, a), append(sizes, token.Estimate(a.Text))
		}
	}
	most := fairShare(sizes, limit)
	for i, size := range sizes {
		if size > most {
			head, tail := token.HeadTail(kept[i].Text, most, size)
			kept[i].Text = fmt.Sprintf("%s\n[... about %d tokens left out ...]\n%s", head, size-most, tail)
		}
	}
	return kept
}

// fairShare returns the most that any one size may be so that all of them,
// lowered to it, stay within limit together.
func fairShare(sizes []int, limit int) int {
	fits := func(most int) bool {
		sum := 0
		for _, size := range sizes {
			sum += min(size, most)
		}
		return sum <= limit
	}
	low, high := 0, max(limit, 0)
	for low < high {
		if middle := low + (high-low+1)/2; fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
