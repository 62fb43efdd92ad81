package llm

import (
	"time"

	"keen/internal/tools"
)

// StreamEventType names what a [StreamEvent] reports.
type StreamEventType string

// The events of a turn, in the order in which they may come: steps, each with
// text and reasoning, then its tools; compactions between steps; one terminal
// event at the end.
const (
	// StreamEventTypeStepStarted comes before a request is sent; Step is
	// set. Text that follows belongs to this step.
	StreamEventTypeStepStarted StreamEventType = "step_started"
	// StreamEventTypeChunk carries a piece of the answer in Text.
	StreamEventTypeChunk StreamEventType = "chunk"
	// StreamEventTypeReasoningChunk carries a piece of reasoning in Text.
	StreamEventTypeReasoningChunk StreamEventType = "reasoning_chunk"
	// StreamEventTypeRetry says that the sample failed and is sent again:
	// text and reasoning since StepStarted are void. Retry is set.
	StreamEventTypeRetry StreamEventType = "retry"
	// StreamEventTypeUsage carries what the provider reported for a step.
	StreamEventTypeUsage StreamEventType = "usage"
	// StreamEventTypeToolStarted says that a call starts to run.
	StreamEventTypeToolStarted StreamEventType = "tool_started"
	// StreamEventTypeToolOutput carries output of a running call.
	StreamEventTypeToolOutput StreamEventType = "tool_output"
	// StreamEventTypeToolEnded carries the result of a call. A call that
	// never ran, because the turn was interrupted, ends without a start.
	StreamEventTypeToolEnded StreamEventType = "tool_ended"
	// StreamEventTypeNudge carries a message that Keen itself adds to the
	// history as a user message, in Text.
	StreamEventTypeNudge StreamEventType = "nudge"
	// StreamEventTypeNotice carries a line for the user in Text.
	StreamEventTypeNotice StreamEventType = "notice"

	// StreamEventTypeAutoCompactionStarted comes before the private
	// compaction request; AutoCompaction.Cancel stops only that.
	StreamEventTypeAutoCompactionStarted StreamEventType = "auto_compaction_started"
	// StreamEventTypeAutoCompactionApplied says that the loop now continues
	// from AutoCompaction.Replacement. The consumer stores the checkpoint
	// before it reads the next event.
	StreamEventTypeAutoCompactionApplied StreamEventType = "auto_compaction_applied"
	// StreamEventTypeAutoCompactionCancelled says that it was cancelled and
	// nothing changed.
	StreamEventTypeAutoCompactionCancelled StreamEventType = "auto_compaction_cancelled"
	// StreamEventTypeAutoCompactionFailed says that it failed, see
	// AutoCompaction.Err, and nothing changed.
	StreamEventTypeAutoCompactionFailed StreamEventType = "auto_compaction_failed"

	// StreamEventTypeDone ends a turn whose answer is complete.
	StreamEventTypeDone StreamEventType = "done"
	// StreamEventTypeIncomplete ends a turn that stopped early with valid
	// partial work; Err says why. It wraps context.Canceled after an
	// interrupt.
	StreamEventTypeIncomplete StreamEventType = "incomplete"
	// StreamEventTypeError ends a turn that failed; Err says why.
	StreamEventTypeError StreamEventType = "error"
)

// StreamEvent is one thing that happened in a turn. Only the fields that its
// type names are set.
type StreamEvent struct {
	Type StreamEventType
	// Text is the text of chunks, notices and nudges.
	Text string
	// Step describes the request of a StepStarted event.
	Step *StepInfo
	// Tool is set on tool events.
	Tool *ToolEvent
	// Usage is set on Usage events.
	Usage *Usage
	// Retry is set on Retry events.
	Retry *RetryInfo
	// AutoCompaction is set on the four automatic-compaction events.
	AutoCompaction *AutoCompactionEvent
	// Err is set on Incomplete and Error events.
	Err error
	// StopReason is set on terminal events when a provider gave one.
	StopReason StopReason
}

// Terminal reports whether the event ends its stream.
func (e StreamEvent) Terminal() bool {
	switch e.Type {
	case StreamEventTypeDone, StreamEventTypeIncomplete, StreamEventTypeError:
		return true
	}
	return false
}

// StepInfo describes a request that is about to be sent.
type StepInfo struct {
	// Number counts the steps of the turn from 1.
	Number int
	// ContextTokens estimates the input of the request, in tokens.
	ContextTokens int
	// Budget is the effective input budget, in tokens.
	Budget int
	// Window is the context window the budget was made from, in tokens.
	Window int
	// Reduced says that old tool outputs were shortened in this request.
	Reduced bool
}

// ToolEvent is the payload of tool events.
type ToolEvent struct {
	// Call is the call that the event is about; set on each.
	Call tools.Call
	// Output is a piece of output, on ToolOutput.
	Output string
	// Result is the call's result, on ToolEnded.
	Result *tools.Result
}

// RetryInfo says why and when a sample is sent again.
type RetryInfo struct {
	// Attempt counts the retries of this request from 1.
	Attempt int
	// Delay is how long Keen waits before it sends again.
	Delay time.Duration
	// Err is what went wrong, usually an [*apierror.Error].
	Err error
}

// AutoCompactionEvent is the payload of the automatic-compaction events.
type AutoCompactionEvent struct {
	// Cancel cancels only the private compaction request, on Started. It may
	// be called at any time, more than once and from any goroutine.
	Cancel func()
	// Forced says that the request could not be sent without compaction, on
	// every one of the four events.
	Forced bool
	// Replacement is the new history, on Applied: one synthetic user
	// message. The receiver owns it.
	Replacement []Message
	// Usage is what the compaction request cost, on Applied and Failed, nil
	// when unknown. It says nothing about the context in use.
	Usage *Usage
	// Err says what went wrong, on Failed.
	Err error
}

// Usage is what a provider reported for one request, in tokens, normalised:
// each provider's own rule is applied by its client.
type Usage struct {
	// InputTokens is the whole input, cached tokens included.
	InputTokens int `json:"input_tokens"`
	// OutputTokens is the whole output, reasoning included.
	OutputTokens int `json:"output_tokens"`
	// ReasoningTokens is the part of the output that was reasoning.
	ReasoningTokens int `json:"reasoning_tokens,omitempty"`
	// CacheReadTokens is the part of the input read from a cache.
	CacheReadTokens int `json:"cache_read_tokens,omitempty"`
	// CacheWriteTokens is the part of the input written to a cache.
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
	}
}

// Minus returns what u has more than v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens - v.InputTokens,
		OutputTokens:     u.OutputTokens - v.OutputTokens,
		ReasoningTokens:  u.ReasoningTokens - v.ReasoningTokens,
		CacheReadTokens:  u.CacheReadTokens - v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens - v.CacheWriteTokens,
	}
}

// StopReason says why a model stopped, in Keen's own words.
type StopReason string

// The reasons a model stops.
const (
	// StopUnknown means that the provider gave a reason Keen does not know.
	StopUnknown StopReason = ""
	// StopEnd means that the answer is complete.
	StopEnd StopReason = "end"
	// StopToolCalls means that the model waits for tool results.
	StopToolCalls StopReason = "tool_calls"
	// StopLength means that the output limit cut the answer.
	StopLength StopReason = "length"
	// StopContextWindow means that the window was full.
	StopContextWindow StopReason = "context_window"
	// StopRefusal means that a filter or the model refused to go on.
	StopRefusal StopReason = "refusal"
)
