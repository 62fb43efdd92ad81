package llm

import (
	"context"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// An adapter speaks one provider's wire format. It keeps no history and makes
// no decision: the loop asks, the adapter translates. Its methods may be
// called from several turns at once.
type adapter interface {
	// limits returns the window the adapter was configured with and the
	// output it asks for, uncapped, by its own policy.
	limits() limits
	// start makes the native conversation of a turn. It has no effect on
	// anything but its result, so the loop may throw that away.
	start(r turnRequest) (conversation, error)
	// classify says what an error of a sampler means, never what to do. It
	// returns nil for nil, and passes an *apierror.Error through.
	classify(err error) *apierror.Error
}

// limits are a model's sizes in tokens.
type limits struct {
	// Window is the believed context window.
	Window int
	// Output is the output to ask for before it is capped by the window.
	Output int
}

// turnRequest is everything a conversation starts from.
type turnRequest struct {
	// System is the system prompt, without the messages.
	System string
	// History is canonical history without system messages. It ends with a
	// user message. The conversation must not change or keep it.
	History []Message
	// Specs are the tools to offer, in a stable order; none for OneShot.
	Specs []tools.Spec
	// SessionID is for request metadata and prompt caching; may be empty.
	SessionID string
	// OneShot asks for one plain answer: thinking is switched off or set to
	// the least that leaves room for the answer.
	OneShot bool
}

// A conversation is one turn's history in the provider's own types, used by
// one goroutine.
type conversation interface {
	// estimate returns the tokens of the next request, unreduced: system
	// prompt, tool schemas and every message. It costs the same however
	// long the history is.
	estimate() int
	// prepare makes the next request. It shortens old tool outputs on a copy
	// when the request is larger than l.Budget and returns an error that
	// wraps ErrContextWindowExceeded when it still is.
	prepare(l requestLimits) (prepared, error)
	// appendResults adds the results of the last step's calls: one for each
	// call, in call order.
	appendResults(results []tools.Result)
	// appendUser adds a user message of Keen's own. Directly after results it
	// stands behind a placeholder for the missing answer, because several
	// providers refuse both in one turn of the user.
	appendUser(text string)
}

// requestLimits are the sizes of one request, in tokens.
type requestLimits struct {
	// Budget is the most that the request's own estimate may be.
	Budget int
	// Output is the output limit to send.
	Output int
}

// prepared is a request that is ready to be sent.
type prepared struct {
	// sample sends it.
	sample sampler
	// estimate is the size of the request as it will be sent, in tokens.
	estimate int
	// reduced says that it is smaller than the conversation.
	reduced bool
}

// A sampler sends one prepared request and reads the answer to its terminal
// event; a stream that ends without one is a transient error. Pieces of the
// answer go to emit as they come. The answer is recorded in the conversation
// only when the sampler returns nil; text and calls of an answer that was cut
// by the output limit are recorded without the calls, and an answer with
// neither is not recorded at all. A sampler may be called again after an
// error. It closes the response body and leaves no goroutine.
type sampler func(ctx context.Context, emit func(delta)) (step, error)

// delta is a piece of an answer.
type delta struct {
	Text      string
	Reasoning string
}

// step is a whole answer.
type step struct {
	Text string
	// Reasoning is the length of reasoning seen, in bytes.
	Reasoning int
	// Calls have valid input and ids that are unique in the conversation.
	// They are empty when Stop is StopLength.
	Calls []tools.Call
	// CutCalls is the number of calls the output limit cut away.
	CutCalls int
	// Usage is nil when the provider reported none.
	Usage *Usage
	// AnswerTokens is what the recorded answer adds to the next request by
	// the provider's count, 0 when unknown: output without the reasoning
	// that is not replayed.
	AnswerTokens int
	Stop         StopReason
	// RawStop is the provider's own word, for messages.
	RawStop string
}
