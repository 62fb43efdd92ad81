package llm

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"strconv"
	"strings"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// defaultOutput is the output to ask for, in tokens, where neither the
// configuration nor the client says otherwise.
const defaultOutput = 8192

// What a block, a call, a result and a tool cost beside their text, in tokens.
const (
	blockOverhead  = 4
	callOverhead   = 12
	resultOverhead = 12
	toolOverhead   = 12
)

// specTokens is the size of a tool's definition in tokens.
func specTokens(s tools.Spec) int {
	return toolOverhead + token.Estimate(s.Name) + token.Estimate(s.Description) + token.Estimate(string(s.Schema))
}

// callTokens is the size of a call in tokens.
func callTokens(k tools.Call) int {
	return callOverhead + token.Estimate(k.ID) + token.Estimate(k.Name) + token.Estimate(string(k.Input))
}

// maxCallID is the longest call id that every server takes back, in bytes.
const maxCallID = 64

// callIDs are the call ids in use in a conversation.
type callIDs map[string]bool

// take returns an id that no other call of the conversation has, and marks it
// as used: the server's own where that can be.
func (c callIDs) take(id string) string {
	for n := len(c) + 1; id == "" || len(id) > maxCallID || c[id]; n++ {
		id = fmt.Sprintf("call_%d", n)
	}
	c[id] = true
	return id
}

// historyWriter is a conversation as history is put into it, piece by piece.
type historyWriter interface {
	appendUser(text string)
	addText(text string)
	addCall(call tools.Call)
	appendResults(results []tools.Result)
}

// writeHistory puts canonical history into a new conversation and marks its
// call ids as used.
func writeHistory(w historyWriter, ids callIDs, history []Message) {
	for _, e := range formatHistory(history) {
		switch e.kind {
		case entryUser:
			w.appendUser(e.text)
		case entryAssistant:
			w.addText(e.text)
			for _, call := range e.calls {
				ids.take(call.ID)
				w.addCall(call)
			}
		case entryResults:
			w.appendResults(e.results)
		}
	}
}

// spoken is one content block with the role it is said in.
type spoken[R comparable, B any] struct {
	role  R
	block B
}

// speakers yields blocks as messages: the blocks of one role in a row make one,
// so roles always alternate.
func speakers[R comparable, B any](blocks []spoken[R, B]) iter.Seq2[R, []B] {
	return func(yield func(R, []B) bool) {
		for i := 0; i < len(blocks); {
			role := blocks[i].role
			var content []B
			for ; i < len(blocks) && blocks[i].role == role; i++ {
				content = append(content, blocks[i].block)
			}
			if !yield(role, content) {
				return
			}
		}
	}
}

// cutsOff reports whether an answer was ended from outside: its last call is
// probably torn, and reasoning without what it led to is refused.
func cutsOff(stop StopReason) bool {
	return stop == StopLength || stop == StopContextWindow || stop == StopRefusal
}

// errCutStream means that a stream ended without its terminal event. It is a
// transient error: SDKs report it as success.
var errCutStream = errors.New("the answer ended before its end")

// classifySDK says what an error means that an SDK reported: raw holds what
// was read from its fields.
func classifySDK(err error, raw apierror.Raw) *apierror.Error {
	if err == nil {
		return nil
	}
	var classified *apierror.Error
	if errors.As(err, &classified) {
		return classified
	}
	if errors.Is(err, errCutStream) {
		return &apierror.Error{Kind: apierror.KindTransient, Provider: raw.Provider, Message: err.Error(), Err: err}
	}
	var noSecret *credentialError
	var network net.Error
	if errors.As(err, &noSecret) && !errors.As(noSecret.err, &network) {
		return &apierror.Error{Kind: apierror.KindAuth, Provider: raw.Provider, Message: noSecret.Error(), Err: err}
	}
	return apierror.Classify(raw)
}

// nonBlank returns text, or a stand-in where providers refuse blank text.
func nonBlank(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}

// thinkingBudget reads an effort that is given as a number of tokens.
func thinkingBudget(effort string) (tokens int, ok bool) {
	tokens, err := strconv.Atoi(effort)
	return tokens, err == nil && tokens > 0
}

// minThinking is the least budget that Claude takes, in tokens.
const minThinking = 1024

// cappedThinking returns the budget to send with an output limit, in tokens,
// with room left to answer; 0 means that there is no room to think.
func cappedThinking(budget, output int) int {
	budget = min(max(budget, minThinking), output*3/4)
	if budget < minThinking {
		return 0
	}
	return budget
}

// noThinking reports whether an effort switches thinking off.
func noThinking(effort string) bool { return effort == "off" || effort == "none" }
