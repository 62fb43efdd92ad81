package llm

import (
	"context"
	"errors"
	"fmt"

	"keen/internal/llm/apierror"
	"keen/internal/llm/compaction"
)

// checkpoint is the point between two steps: all results of the last step are
// in, the next request is not made yet. It compacts when the input has reached
// 90 % of the budget, unless the guard knows that it would not help.
func (t *turn) checkpoint(ctx context.Context) {
	if t.opts.DisableAutoCompaction {
		return
	}
	budget := t.c.sizes().Budget
	if !shouldAutoCompact(t.estimate(), budget) || !t.guard.mayCompact(t.conv.estimate()) {
		return
	}
	if t.leastAfterCompaction() >= usefulLimit(budget) {
		// System prompt, tools and the task alone fill the window.
		t.guard.exhausted = true
		return
	}
	t.attempted = t.steps + 1
	if err := t.compact(ctx, compactProactively); err != nil {
		t.guard.unsuccessful(t.conv.estimate(), budget)
		return
	}
	t.noteProgress(budget)
}

// noteProgress tells the guard what a compaction achieved and the user when
// the guard gives up because of it.
func (t *turn) noteProgress(budget int) {
	if t.estimate() >= usefulLimit(budget) {
		t.guard.exhausted = true
	}
	if !t.guard.stalled() || t.guard.exhausted {
		return
	}
	t.guard.exhausted = true
	t.emit(StreamEvent{Type: StreamEventTypeNotice, Text: fmt.Sprintf(
		"%s fills the window again right after each compaction, so Keen stops compacting in this turn and shortens old tool outputs instead. Ask for smaller parts of it.", t.guard.culprit)})
}

// forceCompaction compacts because the request does not fit as it is. cause is
// what said so. It returns the terminal error when nothing can be done.
func (t *turn) forceCompaction(ctx context.Context, cause error) error {
	if t.attempted == t.steps+1 && isLocal(cause) {
		// This very history was just offered to the compactor, in vain or
		// with this result.
		return t.contextError(cause, errAlreadyAttempted)
	}
	if !t.guard.mayForce() {
		return t.contextError(cause, errNoProgress)
	}
	if t.leastAfterCompaction() > t.c.sizes().Budget {
		return t.contextError(cause, errIncompressible)
	}
	if err := t.compact(ctx, compactForced); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return t.contextError(cause, err)
	}
	t.noteProgress(t.c.sizes().Budget)
	return nil
}

// isLocal reports whether Keen itself found that the request does not fit.
func isLocal(err error) bool {
	var e *apierror.Error
	return !errors.As(err, &e)
}

var (
	errAlreadyAttempted = errors.New("compaction was just attempted on the same history")
	errNoProgress       = errors.New("compaction frees too little to go on")
	errIncompressible   = errors.New("what compaction has to keep does not fit either")
)

// compactionCause says why a compaction runs.
type compactionCause int

const (
	compactProactively compactionCause = iota
	compactForced
)

// compact replaces the history by a summary. The state of the loop changes
// only when everything succeeded, and before the consumer hears of it. The
// error says why nothing changed; it is reported in an event unless there was
// nothing to do.
func (t *turn) compact(ctx context.Context, cause compactionCause) error {
	if !compactable(t.history) {
		return compaction.ErrNothing
	}
	forced := cause == compactForced
	if err := t.announceCompaction(ctx, cause); err != nil {
		return err
	}
	t.guard.begin(largestOutput(t.history))
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	t.emit(StreamEvent{Type: StreamEventTypeAutoCompactionStarted, AutoCompaction: &AutoCompactionEvent{Cancel: cancel, Forced: forced}})
	result, err := AutoCompact(child, t.c, AutoCompactRequest{
		History: t.history, Attachments: t.attachments(), SessionID: t.opts.SessionID, Budget: t.c.CompactionBudget,
	})
	var conv conversation
	if err == nil {
		conv, err = t.start(result.Replacement)
	}
	if child.Err() != nil {
		t.emit(StreamEvent{Type: StreamEventTypeAutoCompactionCancelled, AutoCompaction: &AutoCompactionEvent{Forced: forced}})
		return fmt.Errorf("compaction cancelled: %w", child.Err())
	}
	if err != nil {
		t.emit(StreamEvent{Type: StreamEventTypeAutoCompactionFailed, AutoCompaction: &AutoCompactionEvent{Forced: forced, Err: err, Usage: result.Usage}})
		return err
	}
	t.history, t.conv, t.meter = CloneMessages(result.Replacement), conv, meter{}
	t.guard.applied()
	t.emit(StreamEvent{Type: StreamEventTypeAutoCompactionApplied, AutoCompaction: &AutoCompactionEvent{
		Forced: forced, Replacement: result.Replacement, Usage: result.Usage,
	}})
	if t.opts.Companion != nil {
		t.opts.Companion.CompactionEnded(ctx, t.compactionInfo(cause))
	}
	return nil
}

// announceCompaction tells the companion of a compaction. Its objection counts
// for a proactive one.
func (t *turn) announceCompaction(ctx context.Context, cause compactionCause) error {
	if t.opts.Companion == nil {
		return nil
	}
	err := t.opts.Companion.CompactionStarting(ctx, t.compactionInfo(cause))
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	text := fmt.Sprintf("The context was not compacted: %v", err)
	if cause == compactForced {
		text = fmt.Sprintf("The context is compacted although it was objected to (%v): the next request does not fit without.", err)
	}
	if text != t.objection {
		t.objection = text
		t.emit(StreamEvent{Type: StreamEventTypeNotice, Text: text})
	}
	if cause == compactForced {
		return nil
	}
	return err
}

// estimate is the size of the next request, unreduced, in tokens.
func (t *turn) estimate() int {
	return t.meter.estimate(t.conv.estimate(), t.c.learned.scaler())
}

// leastAfterCompaction is the size of a request after the best compaction
// there can be: system prompt, tools, the task and a short summary.
func (t *turn) leastAfterCompaction() int {
	task, _ := retainedTask(t.history)
	conv, err := t.start([]Message{newCompactedMessage("", task).with(t.attachments())})
	if err != nil {
		return 0
	}
	c := t.c.learned.scaler()
	return c.Scale(conv.estimate() + shortSummary)
}

// shortSummary is the size of a short summary, in tokens.
const shortSummary = 400

// compactable reports whether a history holds anything beside the message that
// a compaction would keep anyway.
func compactable(history []Message) bool {
	return len(history) > 1
}
