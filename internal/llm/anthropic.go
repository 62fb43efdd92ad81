package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// anthropicOutput is the output that the Anthropic and Bedrock clients ask for
// where the model allows it, in tokens.
const anthropicOutput = 64000

// NewAnthropicClient returns a client of Anthropic's Messages API, or of a
// server that speaks it.
func NewAnthropicClient(cfg ClientConfig) (*Client, error) {
	apply := apiKeyHeader("x-api-key")
	if cfg.Quirks.BearerAuth {
		apply = bearerHeader
	}
	opts := []option.RequestOption{
		// The environment belongs to the user's other programs, and the
		// server may be a third party.
		option.WithoutEnvironmentDefaults(),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(),
		option.WithHTTPClient(streamingClient(cfg, apply)),
		option.WithMiddleware(nameEvents),
	}
	opts = append(opts, option.WithBaseURL(cmp.Or(cfg.BaseURL, "https://api.anthropic.com")))
	if cfg.Quirks.AnthropicVersion != "" {
		opts = append(opts, option.WithHeader("anthropic-version", cfg.Quirks.AnthropicVersion))
	}
	for name, value := range cfg.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return newClient(&anthropicAdapter{cfg: cfg, messages: anthropic.NewMessageService(opts...)}, cfg)
}

// anthropicAdapter speaks the Messages API.
type anthropicAdapter struct {
	cfg      ClientConfig
	messages anthropic.MessageService
}

func (a *anthropicAdapter) limits() limits {
	return limits{Window: a.cfg.ContextWindow, Output: cmp.Or(a.cfg.MaxOutputTokens, anthropicOutput)}
}

// anthropicBlock is one content block.
type anthropicBlock = spoken[anthropicRole, anthropic.ContentBlockParamUnion]

type anthropicRole int

const (
	anthropicUser anthropicRole = iota
	anthropicAssistant
)

// anthropicConversation is the native history of a turn.
type anthropicConversation struct {
	a       *anthropicAdapter
	base    anthropic.MessageNewParams
	history nativeHistory[anthropicBlock]
	ids     callIDs
	// budget is how many tokens to think, 0 when that is not set as a number.
	budget int
}

func (a *anthropicAdapter) start(r turnRequest) (conversation, error) {
	c := &anthropicConversation{a: a, base: anthropic.MessageNewParams{Model: a.cfg.Model}, ids: make(callIDs)}
	if !a.cfg.Quirks.NoPromptCache {
		// The server places the breakpoint at the end of the messages by
		// itself, so that they stay byte-equal from request to request.
		c.base.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	if r.System != "" {
		c.base.System = []anthropic.TextBlockParam{{Text: r.System}}
		c.history.fixed += token.Estimate(r.System)
	}
	for _, s := range r.Specs {
		c.base.Tools = append(c.base.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: s.Name, Description: anthropic.String(s.Description),
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](s.Schema),
		}})
		c.history.fixed += specTokens(s)
	}
	c.think(a.cfg.Effort, r.OneShot)
	writeHistory(c, c.ids, r.History)
	return c, nil
}

// think sets the thinking effort: a level, or for older models a number of
// tokens, which prepare fits into the output. A one-shot answer thinks as
// little as the setting allows, so that its output is left for the answer.
func (c *anthropicConversation) think(effort string, oneShot bool) {
	budget, counted := thinkingBudget(effort)
	switch {
	case effort == "":
	case noThinking(effort) || counted && oneShot:
		c.base.Thinking = anthropic.ThinkingConfigParamUnion{OfDisabled: &anthropic.ThinkingConfigDisabledParam{}}
	case counted:
		c.budget = budget
	default:
		if oneShot {
			effort = "low"
		}
		c.base.Thinking = anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}}
		c.base.OutputConfig = anthropic.OutputConfigParam{Effort: anthropic.OutputConfigEffort(effort)}
	}
}

// anthropicBudget makes the setting for a number of thinking tokens. The SDK
// writes a warning to the terminal when its own type for it meets certain
// models.
func anthropicBudget(tokens int) anthropic.ThinkingConfigParamUnion {
	return param.Override[anthropic.ThinkingConfigParamUnion](struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	}{"enabled", tokens})
}

func (c *anthropicConversation) estimate() int { return c.history.estimate() }

func (c *anthropicConversation) appendUser(text string) {
	if c.history.endsWithOutput() {
		c.addText(interruptedMark)
	}
	c.history.add(anthropicBlock{anthropicUser, anthropic.NewTextBlock(nonBlank(text))}, token.Estimate(text)+blockOverhead)
}

// addText adds text of the assistant; blank text is refused by the server.
func (c *anthropicConversation) addText(text string) {
	if strings.TrimSpace(text) != "" {
		c.history.add(anthropicBlock{anthropicAssistant, anthropic.NewTextBlock(text)}, token.Estimate(text)+blockOverhead)
	}
}

func (c *anthropicConversation) addCall(call tools.Call) {
	block := anthropic.NewToolUseBlock(call.ID, call.Input, wireName(call.Name))
	c.history.add(anthropicBlock{anthropicAssistant, block}, callTokens(call))
}

func (c *anthropicConversation) appendResults(results []tools.Result) {
	c.history.beginResults()
	for _, r := range results {
		failed := r.Status != tools.StatusSuccess
		c.history.addOutput(r.Output, resultOverhead, func(output string) anthropicBlock {
			return anthropicBlock{anthropicUser, anthropic.NewToolResultBlock(r.CallID, nonBlank(output), failed)}
		})
	}
}

func (c *anthropicConversation) prepare(l requestLimits) (prepared, error) {
	blocks, tokens, err := c.history.fit(l.Budget)
	if err != nil {
		return prepared{}, err
	}
	p := c.base
	p.MaxTokens = int64(l.Output)
	if budget := cappedThinking(c.budget, l.Output); c.budget > 0 && budget > 0 {
		p.Thinking = anthropicBudget(budget)
	}
	for role, content := range speakers(blocks) {
		if role == anthropicUser {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(content...))
		} else {
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(content...))
		}
	}
	return prepared{estimate: tokens, reduced: tokens < c.history.estimate(), sample: func(ctx context.Context, emit func(delta)) (step, error) {
		return c.sample(ctx, p, emit)
	}}, nil
}

// sample sends a request and records the answer when it is whole.
func (c *anthropicConversation) sample(ctx context.Context, p anthropic.MessageNewParams, emit func(delta)) (step, error) {
	stream := c.a.messages.NewStreaming(ctx, p)
	defer func() { _ = stream.Close() }()
	var r anthropicReader
	for stream.Next() {
		if err := r.event(stream.Current(), emit); err != nil {
			return step{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return step{}, err
	}
	if !r.stopped {
		return step{}, errCutStream
	}
	return c.record(&r), nil
}

// record adds an answer to the history: thinking with its signature, text and
// calls, in the order they came. Of an answer that was cut by the output limit
// only the text is kept.
func (c *anthropicConversation) record(r *anthropicReader) step {
	s := step{Usage: r.usage.normal(), Stop: anthropicStop(r.stop), RawStop: r.stop, Reasoning: r.reasoning}
	content := r.message.Content
	for len(content) > 0 && !anthropicSpeaks(content[len(content)-1]) {
		content = content[:len(content)-1] // Thinking is refused at the end.
	}
	cut := cutsOff(s.Stop)
	for _, b := range content {
		switch v := b.AsAny().(type) {
		case anthropic.TextBlock:
			s.Text += v.Text
			c.addText(v.Text)
		case anthropic.ThinkingBlock:
			if !cut {
				c.history.add(anthropicBlock{anthropicAssistant, anthropic.NewThinkingBlock(v.Signature, v.Thinking)}, token.Estimate(v.Thinking)+blockOverhead)
			}
		case anthropic.RedactedThinkingBlock:
			if !cut {
				c.history.add(anthropicBlock{anthropicAssistant, anthropic.NewRedactedThinkingBlock(v.Data)}, token.Estimate(v.Data)+blockOverhead)
			}
		case anthropic.ToolUseBlock:
			if cut {
				s.CutCalls++
				continue
			}
			call := tools.Call{ID: c.ids.take(v.ID), Name: v.Name, Input: NormalizeInput(string(v.Input))}
			s.Calls = append(s.Calls, call)
			c.addCall(call)
		}
	}
	if len(s.Calls) > 0 {
		s.Stop = StopToolCalls
	}
	if s.Usage != nil && len(content) > 0 && !cut {
		s.AnswerTokens = s.Usage.OutputTokens
	}
	return s
}

// anthropicSpeaks reports whether a block of an answer is text or a call.
func anthropicSpeaks(b anthropic.ContentBlockUnion) bool {
	switch v := b.AsAny().(type) {
	case anthropic.ToolUseBlock:
		return true
	case anthropic.TextBlock:
		return strings.TrimSpace(v.Text) != ""
	}
	return false
}

func anthropicStop(reason string) StopReason {
	switch anthropic.StopReason(reason) {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, anthropic.StopReasonPauseTurn:
		return StopEnd
	case anthropic.StopReasonToolUse:
		return StopToolCalls
	case anthropic.StopReasonMaxTokens:
		return StopLength
	case anthropic.StopReasonRefusal:
		return StopRefusal
	}
	if apierror.IsOverflowStop(reason) {
		return StopContextWindow
	}
	return StopUnknown
}

func (a *anthropicAdapter) classify(err error) *apierror.Error {
	raw := apierror.Raw{Provider: a.cfg.Provider, Err: err}
	var e *anthropic.Error
	if errors.As(err, &e) {
		raw.Status, raw.Type, raw.Message, raw.Body = e.StatusCode, string(e.Type()), e.Message, e.RawJSON()
		if raw.Status == http.StatusOK {
			// An error inside a stream carries the status of the stream.
			raw.Status = 0
		}
		if e.Response != nil {
			raw.Header = e.Response.Header
		}
	}
	return classifySDK(err, raw)
}

// anthropicReader folds the events of a stream.
type anthropicReader struct {
	message   anthropic.Message
	usage     anthropicUsage
	stop      string
	stopped   bool
	reasoning int
}

func (r *anthropicReader) event(e anthropic.MessageStreamEventUnion, emit func(delta)) error {
	if err := r.message.Accumulate(e); err != nil {
		return fmt.Errorf("%w: %w", errCutStream, err)
	}
	switch v := e.AsAny().(type) {
	case anthropic.MessageStartEvent:
		r.usage.known = true
		r.usage.input = v.Message.Usage.InputTokens
		r.usage.read = v.Message.Usage.CacheReadInputTokens
		r.usage.write = v.Message.Usage.CacheCreationInputTokens
	case anthropic.ContentBlockDeltaEvent:
		switch d := v.Delta.AsAny().(type) {
		case anthropic.TextDelta:
			emit(delta{Text: d.Text})
		case anthropic.ThinkingDelta:
			r.reasoning += len(d.Thinking)
			emit(delta{Reasoning: d.Thinking})
		}
	case anthropic.MessageDeltaEvent:
		r.stop = string(v.Delta.StopReason)
		r.usage.update(v.Usage)
	case anthropic.MessageStopEvent:
		r.stopped = true
	}
	return nil
}

// anthropicUsage sums what is reported beside each other: cached tokens are
// not part of the input tokens.
type anthropicUsage struct {
	known                               bool
	input, read, write, output, thought int64
}

func (u *anthropicUsage) update(d anthropic.MessageDeltaUsage) {
	u.known = true
	u.output = d.OutputTokens
	u.input = max(u.input, d.InputTokens)
	u.read = max(u.read, d.CacheReadInputTokens)
	u.write = max(u.write, d.CacheCreationInputTokens)
	u.thought = d.OutputTokensDetails.ThinkingTokens
}

func (u anthropicUsage) normal() *Usage {
	input := int(u.input + u.read + u.write)
	if !u.known || input == 0 {
		return nil
	}
	return &Usage{
		InputTokens: input, OutputTokens: int(u.output), ReasoningTokens: int(u.thought),
		CacheReadTokens: int(u.read), CacheWriteTokens: int(u.write),
	}
}
