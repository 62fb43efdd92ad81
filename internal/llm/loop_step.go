package llm

import (
	"context"
	"errors"
	"fmt"

	"keen/internal/llm/apierror"
)

// step gets one answer: it prepares the next request, sends it, and recovers
// once when it does not fit the window.
func (t *turn) step(ctx context.Context) (step, error) {
	var r recovery
	for {
		answer, err := t.request(ctx, r.output)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return step{}, ctx.Err()
		}
		if err := t.recover(ctx, &r, err); err != nil {
			return step{}, err
		}
	}
}

// request prepares and sends the next request. An answer that turns out to be
// an overflow in disguise is returned as an error. outputCap lowers the output
// limit of this request, in tokens; 0 does not.
func (t *turn) request(ctx context.Context, outputCap int) (step, error) {
	sizes := t.c.sizes()
	if outputCap > 0 {
		sizes.Output = min(sizes.Output, outputCap)
	}
	raw := t.conv.estimate()
	p, err := t.conv.prepare(requestLimits{Budget: t.meter.rawBudget(sizes.Budget, t.c.learned.scaler()), Output: sizes.Output})
	if err != nil {
		return step{}, err
	}
	t.guard.requests++
	t.emit(StreamEvent{Type: StreamEventTypeStepStarted, Step: &StepInfo{
		Number: t.guard.requests, ContextTokens: t.estimate(), Budget: sizes.Budget, Window: sizes.Window, Reduced: p.reduced,
	}})
	answer, err := t.sample(ctx, p)
	if err != nil {
		return step{}, err
	}
	if answer.Usage != nil {
		t.emit(StreamEvent{Type: StreamEventTypeUsage, Usage: answer.Usage})
	}
	if e := t.disguisedOverflow(answer, p, sizes); e != nil {
		t.rewind(answer.Text != "" || answer.Reasoning > 0, e)
		return step{}, e
	}
	t.meter.sent(&t.c.learned, p.estimate, t.conv.estimate()-raw, answer)
	return answer, nil
}

// sample sends a prepared request until it is answered: transient errors and
// one empty answer are retried, after telling the consumer to forget the
// partial output.
func (t *turn) sample(ctx context.Context, p prepared) (step, error) {
	if !t.opts.OneShot {
		ctx = withIdleTimeout(ctx, defaultIdleTimeout)
	}
	var attempt, empty int
	for {
		partial := false
		answer, err := p.sample(ctx, func(d delta) {
			partial = true
			if d.Reasoning != "" {
				t.emit(StreamEvent{Type: StreamEventTypeReasoningChunk, Text: d.Reasoning})
			}
			if d.Text != "" {
				t.emit(StreamEvent{Type: StreamEventTypeChunk, Text: d.Text})
			}
		})
		if err == nil && answer.isEmpty() && !t.opts.OneShot && empty == 0 {
			empty++
			t.emit(StreamEvent{Type: StreamEventTypeRetry, Retry: &RetryInfo{Attempt: 1, Err: ErrEmptyAnswer}})
			continue
		}
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return step{}, ctx.Err()
		}
		e := t.c.adapter.classify(err)
		attempt++
		if !e.Retryable() || attempt > t.c.retry.MaxRetries || e.RetryAfter > t.c.retry.MaxRetryAfter {
			if e.Kind == apierror.KindContextOverflow {
				t.rewind(partial, e)
			}
			return step{}, e
		}
		delay := t.c.retry.delay(attempt, e.RetryAfter)
		t.emit(StreamEvent{Type: StreamEventTypeRetry, Retry: &RetryInfo{Attempt: attempt, Delay: delay, Err: e}})
		if err := wait(ctx, delay); err != nil {
			return step{}, err
		}
	}
}

// isEmpty reports whether an answer that ended normally says nothing.
func (s step) isEmpty() bool {
	return s.Text == "" && len(s.Calls) == 0 && s.CutCalls == 0 && (s.Stop == StopEnd || s.Stop == StopUnknown)
}

// rewind tells the consumer to forget the partial output of a sample that is
// not going to be repeated as it was.
func (t *turn) rewind(partial bool, cause error) {
	if partial {
		t.emit(StreamEvent{Type: StreamEventTypeRetry, Retry: &RetryInfo{Attempt: 1, Err: cause}})
	}
}

// disguisedOverflow finds the overflows that arrive as a success: a stop
// reason, an output of nothing at the very end of the window, an input that is
// reported larger than the window, or an input that a server known to do so
// has silently cut.
func (t *turn) disguisedOverflow(answer step, p prepared, sizes Sizes) *apierror.Error {
	e := &apierror.Error{Kind: apierror.KindContextOverflow, Provider: t.c.provider, Code: answer.RawStop}
	if answer.Stop == StopContextWindow {
		e.Message = "the model stopped because its context window was full"
		return e
	}
	if answer.Usage == nil {
		return nil
	}
	input := answer.Usage.InputTokens
	e.Used = input
	switch {
	case input > sizes.Window:
		e.Limit = sizes.Window
		e.Message = fmt.Sprintf("the server took an input of %d tokens, more than the window of %d", input, sizes.Window)
	case answer.Stop == StopLength && answer.Text == "" && answer.Usage.OutputTokens == 0 && input >= sizes.Window-sizes.Window/50:
		e.Limit = sizes.Window
		e.Message = "the input filled the window and left no room for an answer"
	case t.c.quirks.truncatesSilently && input >= minTruncated && input < p.estimate*6/10:
		e.Limit = input
		e.Message = fmt.Sprintf("the server silently cut an input of about %d tokens to %d", p.estimate, input)
	default:
		return nil
	}
	return e
}

// minTruncated is the smallest input, in tokens, that is taken for a truncated
// one: servers that cut silently never have a smaller window.
const minTruncated = 2000

// recovery is what was already done for one request.
type recovery struct {
	compacted, lowered bool
	// output is the output limit that the request needs, 0: the usual one.
	output int
}

// recover does what the error of a request calls for. It returns nil when the
// request is to be prepared and sent again, and the terminal error otherwise.
func (t *turn) recover(ctx context.Context, r *recovery, err error) error {
	var e *apierror.Error
	errors.As(err, &e)
	tooLarge := errors.Is(err, ErrContextWindowExceeded)
	switch {
	case e == nil:
	case e.Kind == apierror.KindPayloadTooLarge:
		// A limit on bytes says nothing about tokens; where the window is
		// nearly full all the same, one compaction is worth a try.
		tooLarge = shouldAutoCompact(t.estimate(), t.c.sizes().Budget)
	case e.Kind == apierror.KindMaxOutput && !r.lowered:
		r.lowered = true
		if t.lowerOutput(e) {
			return nil
		}
	case tooLarge:
		before := t.c.sizes().Output
		t.learn(e)
		if !r.lowered && t.shortenOutput(r, e, before) {
			return nil
		}
	}
	switch {
	case !tooLarge || t.opts.DisableAutoCompaction:
		return err
	case r.compacted:
		return t.contextError(err, nil)
	}
	r.compacted = true
	return t.forceCompaction(ctx, err)
}

// shortenOutput answers an overflow that a smaller output limit cures: the
// input has room by the provider's count and, after what was just learned, by
// Keen's. before is the limit that was sent.
func (t *turn) shortenOutput(r *recovery, e *apierror.Error, before int) bool {
	output, ok := e.OutputAtFault()
	sizes := t.c.sizes()
	if !ok || min(output, sizes.Output) >= before || t.estimate() > sizes.Budget {
		return false
	}
	r.lowered, r.output = true, output
	return true
}

// lowerOutput takes in that the model does not give as much output as was
// asked for: the limit that is stated, or else half of what was refused.
func (t *turn) lowerOutput(e *apierror.Error) bool {
	before := t.c.sizes().Output
	output, stated := before/2, e.Limit > 0 && e.Limit < before
	if stated {
		output = e.Limit
	}
	if output < minOutput {
		return false
	}
	t.c.learned.lowerOutput(output)
	text := fmt.Sprintf("%s refused an output limit of %d tokens for %s; Keen asks for %d from now on.", t.c.provider, before, t.c.model, output)
	if stated {
		text = fmt.Sprintf("%s gives at most %d output tokens for %s, not %d; Keen asks for no more from now on.", t.c.provider, output, t.c.model, before)
	}
	t.emit(StreamEvent{Type: StreamEventTypeNotice, Text: text})
	return true
}

// minOutput is the least output, in tokens, that is worth asking for.
const minOutput = 256

// learn takes from a rejection what it says about the window.
func (t *turn) learn(e *apierror.Error) {
	before := t.c.sizes()
	t.c.learned.rejected(e, t.conv.estimate(), t.estimate())
	if after := t.c.sizes(); after.Window < before.Window {
		t.emit(StreamEvent{Type: StreamEventTypeNotice, Text: fmt.Sprintf("%s accepts %d tokens for %s, not %d; Keen keeps below that from now on.", t.c.provider, after.Window, t.c.model, before.Window)})
	}
}
