package llm

import (
	"context"
	"strings"

	"keen/internal/tools"
)

// Companion goes along with the turns of a session and knows what the model
// has to hear beside the conversation. The turn's goroutine calls it; turns of
// one session may run side by side, so it is safe for concurrent use.
type Companion interface {
	// Attachments returns what has to stand beside the summary after a
	// compaction, such as active skills: all of it, each once. The loop
	// clips it to an eighth of the budget.
	Attachments() []Attachment
	// News returns what happened since it was last asked and the model has
	// not heard of, such as a background job that ended; empty for nothing.
	// The model hears it with its next results.
	News() string
	// CompactionStarting comes before each compaction. An error keeps a
	// proactive one from happening, and the user is told why; a forced one
	// happens all the same. It may take its time, within ctx.
	CompactionStarting(ctx context.Context, c CompactionInfo) error
	// CompactionEnded comes after a compaction was applied.
	CompactionEnded(ctx context.Context, c CompactionInfo)
}

// CompactionInfo describes a compaction.
type CompactionInfo struct {
	// Forced says that the next request could not be sent without it.
	Forced bool
	// SessionID is that of the turn.
	SessionID string
	// ContextTokens estimates the request that made it necessary, after it
	// was applied the request that follows.
	ContextTokens int
}

// attachmentShare is the part of the budget that attachments may take: one of
// so many.
const attachmentShare = 8

// attachments are what stands beside the summary of a compaction.
func (t *turn) attachments() []Attachment {
	if t.opts.Companion == nil {
		return nil
	}
	return boundAttachments(t.opts.Companion.Attachments(), t.c.sizes().Budget/attachmentShare)
}

// addNews puts what the model should hear behind the last of the results.
func (t *turn) addNews(results []tools.Result) {
	if t.opts.Companion == nil || len(results) == 0 {
		return
	}
	if news := strings.TrimSpace(t.opts.Companion.News()); news != "" {
		last := &results[len(results)-1]
		last.Output = strings.TrimRight(last.Output, "\n") + "\n\n[Keen: " + news + "]"
	}
}

func (t *turn) compactionInfo(cause compactionCause) CompactionInfo {
	return CompactionInfo{Forced: cause == compactForced, SessionID: t.opts.SessionID, ContextTokens: t.estimate()}
}
