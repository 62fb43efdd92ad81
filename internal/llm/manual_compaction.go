package llm

import (
	"context"
	"fmt"

	"keen/internal/llm/compaction"
)

// ManualCompactRequest is what [ManualCompact] works on.
type ManualCompactRequest struct {
	// History is canonical history; system messages in it are left out.
	History []Message
	// Companion is told of the compaction, may object to it, and says what
	// stands beside the summary; nil for none.
	Companion Companion
	// Hint is what the user wants the summary to focus on, may be empty.
	Hint string
	// SessionID is passed on to the requests.
	SessionID string
	// Budget returns the most that one request may have, see
	// [AutoCompactRequest].
	Budget func() int
}

// ManualCompact summarises a history on the user's command. It is sized and
// sent like an automatic compaction, so it works above the window too, but it
// is visible: the events of the request that makes the summary go to emit,
// terminal events excepted. A Retry event among them voids the text before it.
//
// The replacement is one synthetic user message with the summary; no task is
// retained. Errors are those of [AutoCompact].
func ManualCompact(ctx context.Context, client LLMClient, r ManualCompactRequest, emit func(StreamEvent)) (AutoCompactResult, error) {
	info := CompactionInfo{SessionID: r.SessionID, ContextTokens: estimateMessages(r.History)}
	var attachments []Attachment
	if r.Companion != nil {
		if err := r.Companion.CompactionStarting(ctx, info); err != nil {
			return AutoCompactResult{}, fmt.Errorf("compact: %w", err)
		}
		attachments = boundAttachments(r.Companion.Attachments(), r.Budget()/attachmentShare)
	}
	s := summariser{client: client, sessionID: r.SessionID, forward: emit}
	check := func(summary string) error {
		return checkSummary(summary, r.History, newManualReplacement(summary))
	}
	summary, err := s.run(ctx, compactionOptions{History: r.History, Mode: compaction.ModeManual, Hint: r.Hint}, r.Budget, check)
	if err != nil {
		return AutoCompactResult{Usage: s.usage}, fmt.Errorf("compact: %w", err)
	}
	replacement := []Message{newManualReplacement(summary).with(attachments)}
	if r.Companion != nil {
		info.ContextTokens = estimateMessages(replacement)
		r.Companion.CompactionEnded(ctx, info)
	}
	return AutoCompactResult{Replacement: replacement, Usage: s.usage}, nil
}

// newManualReplacement makes the one message that replaces a history after a
// manual compaction. It retains no task.
func newManualReplacement(summary string) Message {
	return Message{
		Role: RoleUser, Content: compaction.ManualReplacement(summary),
		Compaction: &CompactedContext{Summary: summary},
	}
}
