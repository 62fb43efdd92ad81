package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"keen/internal/llm/compaction"
	"keen/internal/llm/token"
)

// AutoCompactRequest is what [AutoCompact] works on.
type AutoCompactRequest struct {
	// History is canonical history with its raw outputs. System messages in
	// it are left out. It is not changed.
	History []Message
	// Attachments stand beside the summary in the replacement.
	Attachments []Attachment
	// SessionID is passed on to the requests.
	SessionID string
	// Budget returns the most that one request may have, in tokens of
	// token.Estimate. It is asked again after a rejection, because the
	// client may have learned a smaller window.
	Budget func() int
}

// AutoCompactResult is what a compaction made.
type AutoCompactResult struct {
	// Replacement is the new history: one synthetic user message.
	Replacement []Message
	// Usage sums the requests of the compaction, failed ones included; nil
	// when none was reported. It is also set beside an error.
	Usage *Usage
}

// AutoCompact summarises a history through the given client, privately: no
// event of its requests reaches anybody. It sends plain text, offers no tools
// and switches automatic compaction off in its own requests. The history of
// the caller is untouched in every case.
//
// It returns ctx's error when that was cancelled, an [*compaction.UnusableError]
// when the model gave no usable summary twice, and any error of the client.
// There is no time limit beside ctx.
func AutoCompact(ctx context.Context, client LLMClient, r AutoCompactRequest) (AutoCompactResult, error) {
	task, ok := retainedTask(r.History)
	if !ok {
		return AutoCompactResult{}, errors.New("compact: the history has no user message to retain")
	}
	s := summariser{client: client, sessionID: r.SessionID, forward: func(StreamEvent) {}}
	check := func(summary string) error {
		return checkSummary(summary, r.History, newCompactedMessage(summary, task))
	}
	summary, err := s.run(ctx, compactionOptions{History: r.History, Mode: compaction.ModeAutomatic}, r.Budget, check)
	if err != nil {
		return AutoCompactResult{Usage: s.usage}, fmt.Errorf("compact: %w", err)
	}
	return AutoCompactResult{Replacement: []Message{newCompactedMessage(summary, task).with(r.Attachments)}, Usage: s.usage}, nil
}

// summariser sends compaction requests and collects their summaries.
type summariser struct {
	client    LLMClient
	sessionID string
	// forward sees the events of the request whose text becomes the summary.
	forward func(StreamEvent)
	usage   *Usage
}

// run plans and sends the requests for a summary. A request that the server
// finds too large is planned again when the client has learned a smaller
// budget from that, once; nothing is ever sent twice unchanged.
func (s *summariser) run(ctx context.Context, o compactionOptions, budget func() int, check func(string) error) (string, error) {
	o.Budget = budget()
	summary, err := s.attempt(ctx, o, check)
	if !errors.Is(err, ErrContextWindowExceeded) {
		return summary, err
	}
	smaller := budget()
	if smaller > o.Budget-o.Budget/10 {
		return "", err
	}
	o.Budget = smaller
	return s.attempt(ctx, o, check)
}

// attempt sends the parts of one plan. An unusable summary of the last part is
// asked for once more, with the reason.
func (s *summariser) attempt(ctx context.Context, o compactionOptions, check func(string) error) (string, error) {
	plan, err := planCompaction(o)
	if err != nil {
		return "", err
	}
	soFar := ""
	last := plan.Parts() - 1
	for part := range last {
		soFar, err = s.part(ctx, plan, part, soFar, checkPart, func(StreamEvent) {})
		if err != nil {
			return "", err
		}
	}
	return s.part(ctx, plan, last, soFar, check, s.forward)
}

func checkPart(summary string) error {
	if strings.TrimSpace(summary) == "" {
		return &compaction.UnusableError{Reason: "it is empty"}
	}
	return nil
}

// part gets the summary of one part, in at most two attempts.
func (s *summariser) part(ctx context.Context, plan *compaction.Plan, part int, soFar string, check func(string) error, forward func(StreamEvent)) (string, error) {
	summary, err := s.collect(ctx, compactionMessages(plan, part, soFar, ""), check, forward)
	var unusable *compaction.UnusableError
	if !errors.As(err, &unusable) {
		return summary, err
	}
	forward(StreamEvent{Type: StreamEventTypeRetry, Retry: &RetryInfo{Attempt: 1, Err: unusable}})
	return s.collect(ctx, compactionMessages(plan, part, soFar, unusable.Reason), check, forward)
}

// collect sends one request and returns its text, if that is a usable summary.
// It reads the stream to its end in every case.
func (s *summariser) collect(ctx context.Context, messages []Message, check func(string) error, forward func(StreamEvent)) (string, error) {
	events, err := s.client.StreamChat(ctx, messages, nil, StreamOptions{
		SessionID: s.sessionID, OneShot: true, DisableAutoCompaction: true,
	})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	var reasoning int
	var end StreamEvent
	for e := range events {
		switch e.Type {
		case StreamEventTypeChunk:
			text.WriteString(e.Text)
		case StreamEventTypeReasoningChunk:
			reasoning += len(e.Text)
		case StreamEventTypeRetry:
			// What the failed attempt said is void.
			text.Reset()
			reasoning = 0
		case StreamEventTypeUsage:
			s.account(e.Usage)
		case StreamEventTypeDone, StreamEventTypeIncomplete, StreamEventTypeError:
			end = e
			continue
		}
		forward(e)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	summary := strings.TrimSpace(text.String())
	if err := checkEnd(end, summary, reasoning); err != nil {
		return "", err
	}
	return summary, check(summary)
}

// checkEnd reports whether a compaction request ended the way one must whose
// text can be trusted to be whole.
func checkEnd(end StreamEvent, summary string, reasoning int) error {
	switch {
	case end.Type == "":
		return errors.New("the compaction request ended without a result")
	case end.Type == StreamEventTypeError && end.Err == nil:
		return errors.New("the compaction request failed without saying why")
	case end.Type == StreamEventTypeError:
		return end.Err
	case end.StopReason == StopToolCalls || errors.Is(end.Err, errToolCallInOneShot):
		return &compaction.UnusableError{Reason: "it was a tool call"}
	case summary == "" && reasoning > 0:
		return &compaction.UnusableError{Reason: "the model spent its output on reasoning and gave no text"}
	case end.StopReason == StopLength:
		return &compaction.UnusableError{Reason: "it was cut by the output limit; be shorter"}
	case end.Type == StreamEventTypeIncomplete && summary == "":
		return &compaction.UnusableError{Reason: "it is empty"}
	case end.Type == StreamEventTypeIncomplete:
		return &compaction.UnusableError{Reason: "it is incomplete"}
	}
	return nil
}

func (s *summariser) account(u *Usage) {
	if u == nil {
		return
	}
	if s.usage == nil {
		s.usage = &Usage{}
	}
	*s.usage = s.usage.Plus(*u)
}

// checkSummary reports whether a summary is good enough for replacement to take
// the place of a history.
func checkSummary(summary string, history []Message, replacement Message) error {
	return compaction.Check(summary, compaction.Criteria{
		Prompt: compactionPrompt, Replaced: estimateMessages(history), Replacement: estimateMessages([]Message{replacement}),
	})
}

// newCompactedMessage makes the one message that replaces a history after an
// automatic compaction.
func newCompactedMessage(summary, task string) Message {
	return Message{
		Role: RoleUser, Content: compaction.Replacement(summary, task),
		Compaction: &CompactedContext{Summary: summary, Task: task},
	}
}

// retainedTask returns the user's latest words, of a wrapper those it retains.
// It is not ok when there are none: no user message, an empty one, or a manual
// compaction that nothing of the user follows.
func retainedTask(history []Message) (task string, ok bool) {
	i := lastUserIndex(history)
	if i < 0 {
		return "", false
	}
	task = history[i].Content
	if c := history[i].Compaction; c != nil {
		task = c.Task
	}
	return task, strings.TrimSpace(task) != ""
}

// estimateMessages is the size of messages in tokens, without what a wire adds.
func estimateMessages(messages []Message) int {
	tokens := 0
	for _, m := range messages {
		if m.Role == RoleSystem {
			continue
		}
		tokens += token.Estimate(m.Content)
		for _, a := range m.Attachments {
			tokens += token.Estimate(a.Text)
		}
		for _, a := range m.ToolActivities {
			tokens += token.Estimate(string(a.Input)) + token.Estimate(historicalToolResult(a))
		}
	}
	return tokens
}
