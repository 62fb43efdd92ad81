package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// bedrockAdapter speaks ConverseStream.
type bedrockAdapter struct {
	cfg    ClientConfig
	client *bedrockruntime.Client
}

func (a *bedrockAdapter) limits() limits {
	return limits{Window: a.cfg.ContextWindow, Output: cmp.Or(a.cfg.MaxOutputTokens, anthropicOutput)}
}

// bedrockBlock is one content block.
type bedrockBlock = spoken[types.ConversationRole, types.ContentBlock]

// bedrockConversation is the native history of a turn.
type bedrockConversation struct {
	a       *bedrockAdapter
	base    bedrockruntime.ConverseStreamInput
	history nativeHistory[bedrockBlock]
	ids     callIDs
	cache   bool
	oneShot bool
}

func (a *bedrockAdapter) start(r turnRequest) (conversation, error) {
	c := &bedrockConversation{a: a, cache: a.caches() && !r.OneShot, oneShot: r.OneShot, ids: make(callIDs)}
	c.base.ModelId = aws.String(a.cfg.Model)
	if r.System != "" {
		c.base.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: r.System}}
		c.history.fixed += token.Estimate(r.System)
		if c.cache {
			c.base.System = append(c.base.System, &types.SystemContentBlockMemberCachePoint{Value: bedrockCachePoint()})
		}
	}
	if len(r.Specs) > 0 {
		config := &types.ToolConfiguration{}
		for _, s := range r.Specs {
			schema, err := bedrockDocument(s.Schema)
			if err != nil {
				return nil, fmt.Errorf("schema of tool %s: %w", s.Name, err)
			}
			config.Tools = append(config.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
				Name: aws.String(s.Name), Description: aws.String(nonBlank(s.Description)),
				InputSchema: &types.ToolInputSchemaMemberJson{Value: schema},
			}})
			c.history.fixed += specTokens(s)
		}
		c.base.ToolConfig = config
	}
	writeHistory(c, c.ids, r.History)
	return c, nil
}

// caches reports whether the model knows cache points. One that does not
// refuses the request, so models that are not named here go without.
func (a *bedrockAdapter) caches() bool {
	if a.cfg.Quirks.NoPromptCache {
		return false
	}
	has := func(part string) bool { return strings.Contains(a.cfg.Model, part) }
	return has("amazon.nova-") || has("anthropic.claude-") && !slices.ContainsFunc(bedrockUncached(), has)
}

// bedrockUncached are the models of Claude from before there were cache points.
func bedrockUncached() []string {
	return []string{"claude-v2", "claude-instant", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku", "claude-3-5-sonnet-20240620"}
}

func bedrockCachePoint() types.CachePointBlock {
	return types.CachePointBlock{Type: types.CachePointTypeDefault}
}

// bedrockDocument makes the SDK's document of a JSON object. Numbers keep
// their digits.
func bedrockDocument(raw json.RawMessage) (document.Interface, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var value map[string]any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return document.NewLazyDocument(plainNumbers(value)), nil
}

// plainNumbers replaces the numbers of a decoded value by the types that the
// SDK's document encoder knows.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	}
	return value
}

func (c *bedrockConversation) estimate() int { return c.history.estimate() }

func (c *bedrockConversation) appendUser(text string) {
	if c.history.endsWithOutput() {
		c.addText(interruptedMark)
	}
	c.history.add(bedrockBlock{types.ConversationRoleUser, &types.ContentBlockMemberText{Value: nonBlank(text)}}, token.Estimate(text)+blockOverhead)
}

func (c *bedrockConversation) addText(text string) {
	if strings.TrimSpace(text) != "" {
		c.history.add(bedrockBlock{types.ConversationRoleAssistant, &types.ContentBlockMemberText{Value: text}}, token.Estimate(text)+blockOverhead)
	}
}

func (c *bedrockConversation) addCall(call tools.Call) {
	input, err := bedrockDocument(call.Input)
	if err != nil { // Input is always a JSON object.
		input = document.NewLazyDocument(map[string]any{})
	}
	c.history.add(bedrockBlock{types.ConversationRoleAssistant, &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
		ToolUseId: aws.String(call.ID), Name: aws.String(wireName(call.Name)), Input: input,
	}}}, callTokens(call))
}

func (c *bedrockConversation) appendResults(results []tools.Result) {
	c.history.beginResults()
	for _, r := range results {
		status := types.ToolResultStatusSuccess
		if r.Status != tools.StatusSuccess {
			status = types.ToolResultStatusError
		}
		c.history.addOutput(r.Output, resultOverhead, func(output string) bedrockBlock {
			return bedrockBlock{types.ConversationRoleUser, &types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
				ToolUseId: aws.String(r.CallID), Status: status,
				Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: nonBlank(output)}},
			}}}
		})
	}
}

func (c *bedrockConversation) prepare(l requestLimits) (prepared, error) {
	blocks, tokens, err := c.history.fit(l.Budget)
	if err != nil {
		return prepared{}, err
	}
	input := c.base
	input.InferenceConfig = &types.InferenceConfiguration{MaxTokens: aws.Int32(int32(l.Output))} //nolint:gosec // a third of a window at most
	input.AdditionalModelRequestFields = c.thinking(l.Output)
	for role, content := range speakers(blocks) {
		input.Messages = append(input.Messages, types.Message{Role: role, Content: content})
	}
	if last := len(input.Messages) - 1; c.cache && last >= 0 {
		m := &input.Messages[last]
		m.Content = append(m.Content, &types.ContentBlockMemberCachePoint{Value: bedrockCachePoint()})
	}
	return prepared{estimate: tokens, reduced: tokens < c.history.estimate(), sample: func(ctx context.Context, emit func(delta)) (step, error) {
		return c.sample(ctx, &input, emit)
	}}, nil
}

// thinking makes the fields for Claude's thinking, which Converse passes
// through; a one-shot answer goes without.
func (c *bedrockConversation) thinking(output int) document.Interface {
	effort := c.a.cfg.Effort
	if effort == "" || noThinking(effort) || c.oneShot {
		return nil
	}
	if budget, counted := thinkingBudget(effort); counted {
		budget = cappedThinking(budget, output)
		if budget == 0 {
			return nil
		}
		return document.NewLazyDocument(map[string]any{"thinking": map[string]any{
			"type": "enabled", "budget_tokens": budget,
		}})
	}
	return document.NewLazyDocument(map[string]any{
		"thinking":      map[string]any{"type": "adaptive"},
		"output_config": map[string]any{"effort": effort},
	})
}

// sample sends a request and records the answer when it is whole.
func (c *bedrockConversation) sample(ctx context.Context, input *bedrockruntime.ConverseStreamInput, emit func(delta)) (step, error) {
	ctx, refused := withRefusal(ctx)
	out, err := c.a.client.ConverseStream(ctx, input)
	if err != nil {
		return step{}, refused.explain(err)
	}
	stream := out.GetStream()
	var r bedrockReader
	for e := range stream.Events() {
		r.event(e, emit)
	}
	err = stream.Err()
	if closeErr := stream.Close(); err == nil {
		err = closeErr
	}
	var reported smithy.APIError
	switch {
	case ctx.Err() != nil:
		return step{}, ctx.Err()
	case errors.As(err, &reported):
		return step{}, err
	case err != nil:
		// A frame that cannot be read.
		return step{}, fmt.Errorf("%w: %w", errCutStream, err)
	case !r.stopped:
		// The SDK reports a connection that was cut as the end.
		return step{}, errCutStream
	}
	return c.record(&r), nil
}

// record adds an answer to the history: reasoning with its signature, text and
// calls in the order they came. Of an answer that was cut only the text is
// kept.
func (c *bedrockConversation) record(r *bedrockReader) step {
	s := step{Usage: r.usage, Stop: bedrockStop(r.stop), RawStop: string(r.stop), Reasoning: r.reasoning}
	pieces := r.blocks
	for len(pieces) > 0 && !pieces[len(pieces)-1].speaks() {
		pieces = pieces[:len(pieces)-1] // Thinking is refused at the end.
	}
	cut := cutsOff(s.Stop)
	for _, p := range pieces {
		switch {
		case p.tool != nil && cut:
			s.CutCalls++
		case p.tool != nil:
			call := tools.Call{ID: c.ids.take(aws.ToString(p.tool.ToolUseId)), Name: aws.ToString(p.tool.Name), Input: NormalizeInput(p.input.String())}
			s.Calls = append(s.Calls, call)
			c.addCall(call)
		case p.thought.Len() > 0 || p.redacted != nil || p.signature != "":
			if !cut {
				c.addThought(p)
			}
		default:
			s.Text += p.text.String()
			c.addText(p.text.String())
		}
	}
	if len(s.Calls) > 0 {
		s.Stop = StopToolCalls
	}
	if s.Usage != nil && len(pieces) > 0 && !cut {
		s.AnswerTokens = s.Usage.OutputTokens
	}
	return s
}

func (c *bedrockConversation) addThought(p *bedrockPiece) {
	var content types.ReasoningContentBlock = &types.ReasoningContentBlockMemberReasoningText{Value: types.ReasoningTextBlock{
		Text: aws.String(p.thought.String()), Signature: aws.String(p.signature),
	}}
	tokens := token.Estimate(p.thought.String()) + blockOverhead
	if p.redacted != nil {
		content = &types.ReasoningContentBlockMemberRedactedContent{Value: p.redacted}
		tokens += len(p.redacted) / 4
	}
	c.history.add(bedrockBlock{types.ConversationRoleAssistant, &types.ContentBlockMemberReasoningContent{Value: content}}, tokens)
}

func bedrockStop(reason types.StopReason) StopReason {
	switch reason {
	case types.StopReasonEndTurn, types.StopReasonStopSequence:
		return StopEnd
	case types.StopReasonToolUse:
		return StopToolCalls
	case types.StopReasonMaxTokens:
		return StopLength
	case types.StopReasonGuardrailIntervened, types.StopReasonContentFiltered:
		return StopRefusal
	}
	if apierror.IsOverflowStop(string(reason)) {
		return StopContextWindow
	}
	return StopUnknown
}

func (a *bedrockAdapter) classify(err error) *apierror.Error {
	var unsigned *awsCredentialError
	if errors.As(err, &unsigned) && !errors.Is(err, context.Canceled) {
		return &apierror.Error{Kind: apierror.KindAuth, Provider: a.cfg.Provider, Message: "there are no AWS credentials: run aws configure or aws sso login, or set AWS_PROFILE", Err: err}
	}
	raw := apierror.Raw{Provider: a.cfg.Provider, Err: err}
	var e smithy.APIError
	if errors.As(err, &e) {
		raw.Code, raw.Message = e.ErrorCode(), e.ErrorMessage()
	}
	var refused *responseError
	if errors.As(err, &refused) {
		raw.Status, raw.Body, raw.Header = refused.status, refused.body, refused.header
	}
	return classifySDK(err, raw)
}
