package llm

import (
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"keen/internal/llm/apierror"
)

// responsesError is an error that arrives as an ordinary event.
type responsesError struct{ code, message, param, raw string }

func (e *responsesError) Error() string { return e.message }

// responsesReader folds the events of a stream.
type responsesReader struct {
	items     []responses.ResponseOutputItemUnion
	text      strings.Builder // of the running message, for a cut answer
	usage     *Usage
	stop      StopReason
	raw       string
	ended     bool
	reasoning int
	cutCalls  int
}

func (r *responsesReader) event(e responses.ResponseStreamEventUnion, emit func(delta)) error {
	switch v := e.AsAny().(type) {
	case responses.ResponseTextDeltaEvent:
		r.text.WriteString(v.Delta)
		emit(delta{Text: v.Delta})
	case responses.ResponseRefusalDeltaEvent:
		r.text.WriteString(v.Delta)
		emit(delta{Text: v.Delta})
	case responses.ResponseReasoningSummaryTextDeltaEvent:
		r.reasoning += len(v.Delta)
		emit(delta{Reasoning: v.Delta})
	case responses.ResponseReasoningTextDeltaEvent:
		r.reasoning += len(v.Delta)
		emit(delta{Reasoning: v.Delta})
	case responses.ResponseOutputItemAddedEvent:
		if v.Item.Type == "function_call" {
			r.cutCalls++
		}
	case responses.ResponseOutputItemDoneEvent:
		r.items = append(r.items, v.Item)
		if v.Item.Type == "function_call" {
			r.cutCalls--
		}
	case responses.ResponseCompletedEvent:
		r.end(v.Response, StopEnd, "completed")
	case responses.ResponseIncompleteEvent:
		reason := v.Response.IncompleteDetails.Reason
		r.end(v.Response, responsesStop(reason), reason)
	case responses.ResponseFailedEvent:
		return &responsesError{code: string(v.Response.Error.Code), message: v.Response.Error.Message, raw: e.RawJSON()}
	case responses.ResponseErrorEvent:
		return &responsesError{code: v.Code, message: v.Message, param: v.Param, raw: e.RawJSON()}
	}
	return nil
}

func (r *responsesReader) end(response responses.Response, stop StopReason, raw string) {
	r.ended, r.stop, r.raw = true, stop, raw
	u := response.Usage
	if u.InputTokens <= 0 {
		return
	}
	r.usage = &Usage{
		InputTokens: int(u.InputTokens), OutputTokens: int(u.OutputTokens),
		ReasoningTokens: int(u.OutputTokensDetails.ReasoningTokens),
		CacheReadTokens: int(u.InputTokensDetails.CachedTokens), CacheWriteTokens: int(u.InputTokensDetails.CacheWriteTokens),
	}
}

func responsesStop(reason string) StopReason {
	switch {
	case reason == "max_output_tokens":
		return StopLength
	case reason == "content_filter":
		return StopRefusal
	case apierror.IsOverflowStop(reason):
		return StopContextWindow
	}
	return StopUnknown
}
