package llm

import (
	"fmt"
	"strings"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
)

// ErrContextWindowExceeded is wrapped by every error that says that a request
// does not fit the model's context window, found by Keen or by the provider.
var ErrContextWindowExceeded = apierror.ErrContextWindowExceeded

// MinContextWindow is the smallest window Keen works in, in tokens: below it
// the system prompt, the tools and the reserves leave no room to work.
const MinContextWindow = 16384

// minSafetyMargin is the least safety margin, in tokens.
const minSafetyMargin = 4096

// effectiveBudget returns how many tokens of input a request may have:
// window - output reserve - max(4096, 5 % of the window), the formula of the
// specification. It is never negative.
func effectiveBudget(window, reserve int) int {
	return max(0, window-reserve-safetyMargin(window))
}

func safetyMargin(window int) int {
	return max(minSafetyMargin, window/20)
}

// outputReserve returns the output to ask for, in tokens: what the client
// wants, at most what the model can give, at most a third of the window, so
// that a large reserve does not eat the budget of a small window.
func outputReserve(wanted, modelMax, window int) int {
	reserve := wanted
	if modelMax > 0 {
		reserve = min(reserve, modelMax)
	}
	return max(1, min(reserve, window/3))
}

// shouldAutoCompact reports whether an input of estimate tokens has reached 90
// % of the budget. It is exact in integers.
func shouldAutoCompact(estimate, budget int) bool {
	return budget > 0 && estimate >= threshold(budget)
}

// threshold is the smallest estimate that is at least 90 % of the budget.
func threshold(budget int) int {
	return budget - budget/10
}

// nativeHistory is what the conversations of all adapters share: the
// provider's own items with their size, and the reduction of tool outputs. T
// is one item: a message or a block, whatever carries at most one tool output.
type nativeHistory[T any] struct {
	// fixed is the size of system prompt and tool schemas, in tokens.
	fixed  int
	values []T
	sizes  []itemSize[T]
	total  int
	// newest is the index of the first item of the newest results.
	newest int
}

type itemSize[T any] struct {
	tokens int
	// output is the tool output the item carries, empty for other items.
	output string
	// withOutput makes the same item with another output; nil for others.
	withOutput func(output string) T
}

// add appends an item of the given size that carries no tool output.
func (h *nativeHistory[T]) add(value T, tokens int) {
	h.values = append(h.values, value)
	h.sizes = append(h.sizes, itemSize[T]{tokens: tokens})
	h.total += tokens
}

// addOutput appends the item that build makes of a tool output. overhead is
// the size of the item without the output, in tokens.
func (h *nativeHistory[T]) addOutput(output string, overhead int, build func(output string) T) {
	tokens := overhead + token.Estimate(output)
	h.values = append(h.values, build(output))
	h.sizes = append(h.sizes, itemSize[T]{tokens: tokens, output: output, withOutput: build})
	h.total += tokens
}

// endsWithOutput reports whether the last item carries a tool output.
func (h *nativeHistory[T]) endsWithOutput() bool {
	n := len(h.sizes)
	return n > 0 && h.sizes[n-1].withOutput != nil
}

// beginResults marks that the outputs added from here on are the newest, the
// last to be shortened.
func (h *nativeHistory[T]) beginResults() {
	h.newest = len(h.values)
}

// estimate returns the size of a request with every item as it is, in tokens.
func (h *nativeHistory[T]) estimate() int {
	return h.fixed + h.total
}

// fit returns the items of a request of at most budget tokens and its size.
// The history itself is never changed: where it is too large, tool outputs are
// shortened on a copy, the oldest first, the newest results last. It returns
// an error that wraps [ErrContextWindowExceeded] when that is not enough.
func (h *nativeHistory[T]) fit(budget int) ([]T, int, error) {
	size := h.estimate()
	if size <= budget {
		return h.values[:len(h.values):len(h.values)], size, nil
	}
	r := reduction[T]{h: h, values: append([]T(nil), h.values...), kept: make(map[int]int), size: size, budget: budget}
	for _, pass := range []struct{ from, to, keep int }{
		{0, h.newest, keepOld},
		{h.newest, len(h.values), keepNewest},
		{0, h.newest, 0},
		{h.newest, len(h.values), keepLeast},
	} {
		if r.run(pass.from, pass.to, pass.keep) {
			return r.values, r.size, nil
		}
	}
	return nil, r.size, fmt.Errorf("request of %d tokens has no room in %d even with its tool outputs shortened: %w", r.size, budget, ErrContextWindowExceeded)
}

// How many tokens of a tool output the passes of a reduction keep: enough of
// an old one to know what it was, more of one the model is about to read.
const (
	keepOld    = 256
	keepNewest = 2048
	keepLeast  = 256
)

type reduction[T any] struct {
	h      *nativeHistory[T]
	values []T
	kept   map[int]int // size of the items shortened so far
	size   int
	budget int
}

// run shortens the outputs of a range, in order, until the request fits.
func (r *reduction[T]) run(from, to, keep int) bool {
	for i := from; i < to && r.size > r.budget; i++ {
		s := r.h.sizes[i]
		if s.withOutput == nil {
			continue
		}
		now, shortened := r.kept[i]
		if !shortened {
			now = s.tokens
		}
		// The last output that has to give way keeps all there is room for.
		room := max(keep, token.Estimate(s.output)-(s.tokens-now)-(r.size-r.budget)-shortenSlack)
		output := shorten(s.output, room)
		tokens := s.tokens - token.Estimate(s.output) + token.Estimate(output)
		if tokens >= now {
			continue
		}
		r.values[i] = s.withOutput(output)
		r.kept[i] = tokens
		r.size += tokens - now
	}
	return r.size <= r.budget
}

// shortenSlack covers the note that shorten puts in, in tokens.
const shortenSlack = 48

// shorten returns s in at most about maxTokens tokens: head and tail around a
// note that says how much is missing. maxTokens of 0 leaves only the note.
func shorten(s string, maxTokens int) string {
	tokens := token.Estimate(s)
	if tokens <= maxTokens {
		return s
	}
	note := fmt.Sprintf("[... about %d tokens left out to fit the context window; run the tool again, on a smaller part, if you need them ...]", tokens-max(0, maxTokens))
	head, tail := token.HeadTail(s, maxTokens, tokens)
	return strings.TrimPrefix(head+"\n", "\n") + note + strings.TrimSuffix("\n"+tail, "\n")
}
