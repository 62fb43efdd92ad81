package widgets

import (
	"slices"
	"strings"
)

// history is the prompts of before, the oldest first, and a place in them.
type history struct {
	entries []string
	// at is the entry that is shown; len(entries) is the draft.
	at    int
	draft buffer
	// found and query are those of a search; found is -1 when nothing
	// matches.
	searching bool
	query     string
	found     int
}

func (h *history) reset() {
	h.at, h.draft = len(h.entries), buffer{}
	h.searching, h.query, h.found = false, "", -1
}

func (h *history) add(text string) {
	if strings.TrimSpace(text) != "" && (len(h.entries) == 0 || h.entries[len(h.entries)-1] != text) {
		h.entries = append(h.entries, text)
	}
	h.reset()
}

// older and newer return what the editor shows next, and whether there is any
// such thing. current is kept as the draft when it is left.
func (h *history) older(current buffer) (buffer, bool) {
	if h.at == 0 {
		return buffer{}, false
	}
	if h.at == len(h.entries) {
		h.draft = buffer{elements: slices.Clone(current.elements), cursor: current.cursor}
	}
	h.at--
	return h.entry(h.at), true
}

func (h *history) newer() (buffer, bool) {
	switch {
	case h.at >= len(h.entries):
		return buffer{}, false
	case h.at == len(h.entries)-1:
		h.at++
		return h.draft, true
	}
	h.at++
	return h.entry(h.at), true
}

func (h *history) entry(i int) buffer {
	elements := split(h.entries[i])
	return buffer{elements: elements, cursor: len(elements)}
}

// search looks for the query in the entries before the given one, the latest
// first, whatever the case of its letters.
func (h *history) search(before int) {
	query := strings.ToLower(h.query)
	for i := min(before, len(h.entries)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.entries[i]), query) {
			h.found = i
			return
		}
	}
	if before >= len(h.entries) {
		h.found = -1 // Nowhere at all; else the last one found stays.
	}
}
