package simulator

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Stop says why the model stopped. Values that a wire does not know are sent
// as they are.
type Stop string

// The reasons to stop.
const (
	// StopAuto means the one that fits: StopToolCalls when there are calls,
	// else StopEnd.
	StopAuto          Stop = ""
	StopEnd           Stop = "end"
	StopToolCalls     Stop = "tool_calls"
	StopLength        Stop = "length"
	StopContentFilter Stop = "content_filter"
	// StopContextWindow is an overflow that is reported as a normal end.
	StopContextWindow Stop = "context_window"
)

// Usage is what an answer says that it used, in tokens. Input and output
// include cached and reasoning tokens; a wire that reports them beside does
// the sum.
type Usage struct {
	Input, Output, Cached, Reasoning int
}

// Reply is what the model answers. The zero Reply is an empty answer that ends
// normally.
type Reply struct {
	Reasoning string
	Text      string
	Calls     []Call
	Stop      Stop
	// Usage is reported instead of what was counted, when it is not nil.
	Usage *Usage
	// ChunkBytes is the size of the pieces in which text and input are
	// streamed, about; 0 means 48. Shorter texts come in two pieces.
	ChunkBytes int
	// Fault makes the answer go wrong, when it is not nil.
	Fault *Fault
}

// Text is a reply that says something and ends.
func Text(text string) Reply { return Reply{Text: text} }

// Calls is a reply that asks for calls.
func Calls(calls ...Call) Reply { return Reply{Calls: calls} }

// Fail is a reply that is nothing but a fault.
func Fail(f *Fault) Reply { return Reply{Fault: f} }

// complete returns the reply with what the script left out: ids for the calls
// of request number n and the reason to stop.
func (r Reply) complete(n int) Reply {
	calls := slices.Clone(r.Calls)
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = callID(n, i)
		}
	}
	r.Calls = calls
	if r.Stop == StopAuto {
		r.Stop = StopEnd
		if len(calls) > 0 {
			r.Stop = StopToolCalls
		}
	}
	return r
}

// callID is the id of a call, unique among the answers of a server: i is its
// place in the answer to request number n.
func callID(n, i int) string { return fmt.Sprintf("call_%d_%d", n, i+1) }

// cut shortens a reply to limit tokens, the way a provider ends an answer that
// becomes too long, and reports whether it did. Reasoning comes first, then
// the text, then the calls; a call is cut in its input.
func (r Reply) cut(limit int, count func(string) int) (Reply, bool) {
	left := limit
	take := func(s string) (string, bool) {
		n := count(s)
		if n <= left {
			left -= n
			return s, true
		}
		s, left = prefix(s, left, count), 0
		return s, false
	}
	var whole bool
	short := r
	short.Stop = StopLength
	if short.Reasoning, whole = take(r.Reasoning); !whole {
		short.Text, short.Calls = "", nil
		return short, true
	}
	if short.Text, whole = take(r.Text); !whole {
		short.Calls = nil
		return short, true
	}
	for i, k := range r.Calls {
		if left -= count(k.Name); left <= 0 {
			short.Calls = r.Calls[:i:i]
			return short, true
		}
		if k.Input, whole = take(k.Input); !whole {
			short.Calls = append(slices.Clone(r.Calls[:i]), k)
			return short, true
		}
	}
	return r, false
}

// prefix returns the longest beginning of s, to a few bytes, that has at most
// limit tokens.
func prefix(s string, limit int, count func(string) int) string {
	low, high := 0, len(s) // s[:low] fits, s[:high] does not
	for high-low > utf8.UTFMax {
		middle := (low + high) / 2
		for middle > low && !utf8.RuneStart(s[middle]) {
			middle--
		}
		if middle == low {
			break
		}
		if count(s[:middle]) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	return s[:low]
}

// output counts the tokens of a reply.
func (r Reply) output(count func(string) int) (total, reasoning int) {
	reasoning = count(r.Reasoning)
	total = reasoning + count(r.Text)
	for _, k := range r.Calls {
		total += count(k.Name) + count(k.Input)
	}
	return total, reasoning
}

// defaultChunk is the size of streamed pieces in bytes.
const defaultChunk = 48

// pieces splits s into pieces of about size bytes, at least two when it has
// two characters.
func pieces(s string, size int) []string {
	if size <= 0 {
		size = defaultChunk
	}
	size = max(1, min(size, (len(s)+1)/2))
	var all []string
	for len(s) > 0 {
		end := min(size, len(s))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		all = append(all, s[:end])
		s = s[end:]
	}
	return all
}
