package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// NewOpenAIResponsesClient returns a client of OpenAI's Responses API. It asks
// the server to store nothing: the whole conversation is in each request, and
// reasoning comes back encrypted.
func NewOpenAIResponsesClient(cfg ClientConfig) (*Client, error) {
	return newResponsesClient(cfg, defaultOpenAIBaseURL, responsesPlain)
}

// responsesDialect says which of the two servers of the Responses wire is
// spoken to.
type responsesDialect int

const (
	responsesPlain responsesDialect = iota
	// responsesCodex demands instructions and takes no output limit, see
	// openai_codex.go.
	responsesCodex
)

func newResponsesClient(cfg ClientConfig, base string, dialect responsesDialect, more ...option.RequestOption) (*Client, error) {
	base = cmp.Or(cfg.BaseURL, base)
	if _, err := baseURLHost(base); err != nil {
		return nil, fmt.Errorf("set up %s: %w", cfg.Provider, err)
	}
	service := responses.NewResponseService(append(openAIOptions(cfg, base), append(more,
		option.WithHTTPClient(streamingClient(cfg, bearerHeader)))...)...)
	return newClient(&responsesAdapter{cfg: cfg, service: service, dialect: dialect}, cfg)
}

// responsesAdapter speaks the Responses API.
type responsesAdapter struct {
	cfg     ClientConfig
	service responses.ResponseService
	dialect responsesDialect
}

func (a *responsesAdapter) limits() limits {
	return limits{Window: a.cfg.ContextWindow, Output: cmp.Or(a.cfg.MaxOutputTokens, defaultOutput)}
}

// responsesConversation is the native history of a turn.
type responsesConversation struct {
	a       *responsesAdapter
	base    responses.ResponseNewParams
	history nativeHistory[responses.ResponseInputItemUnionParam]
	ids     callIDs
	// session names the session to the Codex backend; empty elsewhere.
	session string
}

func (a *responsesAdapter) start(r turnRequest) (conversation, error) {
	c := &responsesConversation{a: a, base: responses.ResponseNewParams{
		Model:   a.cfg.Model,
		Store:   openai.Bool(false),
		Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
	}, ids: make(callIDs)}
	system := r.System
	if a.dialect == responsesCodex {
		c.session = r.SessionID
		system = cmp.Or(system, defaultInstructions) // The backend refuses a request without.
	}
	if system != "" {
		c.base.Instructions = openai.String(system)
		c.history.fixed += token.Estimate(system)
	}
	if r.SessionID != "" && !a.cfg.Quirks.NoPromptCache {
		c.base.PromptCacheKey = openai.String(r.SessionID)
	}
	switch effort := openAIEffort(a.cfg.Effort, r); {
	case effort == "":
	case noThinking(a.cfg.Effort):
		c.base.Reasoning.Effort = shared.ReasoningEffortNone
	default:
		c.base.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffort(effort), Summary: shared.ReasoningSummaryAuto}
	}
	for _, s := range r.Specs {
		tool := param.Override[responses.FunctionToolParam](responsesTool{
			Type: "function", Name: s.Name, Description: s.Description, Parameters: s.Schema,
		})
		c.base.Tools = append(c.base.Tools, responses.ToolUnionParam{OfFunction: &tool})
		c.history.fixed += specTokens(s)
	}
	writeHistory(c, c.ids, r.History)
	return c, nil
}

// defaultInstructions stand where there is no system prompt.
const defaultInstructions = "You are a helpful coding agent."

// responsesTool is a function tool whose schema is sent byte for byte.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func (c *responsesConversation) estimate() int { return c.history.estimate() }

func (c *responsesConversation) appendUser(text string) {
	if c.history.endsWithOutput() {
		c.addText(interruptedMark)
	}
	c.addMessage(responses.EasyInputMessageRoleUser, text)
}

func (c *responsesConversation) addText(text string) {
	if text != "" {
		c.addMessage(responses.EasyInputMessageRoleAssistant, text)
	}
}

func (c *responsesConversation) addMessage(role responses.EasyInputMessageRole, text string) {
	c.history.add(responses.ResponseInputItemParamOfMessage(text, role), token.Estimate(text)+blockOverhead)
}

func (c *responsesConversation) addCall(call tools.Call) {
	c.history.add(responses.ResponseInputItemParamOfFunctionCall(string(call.Input), call.ID, wireName(call.Name)), callTokens(call))
}

func (c *responsesConversation) appendResults(results []tools.Result) {
	c.history.beginResults()
	for _, r := range results {
		c.history.addOutput(r.Output, resultOverhead, func(output string) responses.ResponseInputItemUnionParam {
			// The SDK's constructor leaves the call id out.
			return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
				CallID: openai.String(r.CallID),
				Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(output)},
			}}
		})
	}
}

func (c *responsesConversation) prepare(l requestLimits) (prepared, error) {
	items, tokens, err := c.history.fit(l.Budget)
	if err != nil {
		return prepared{}, err
	}
	p := c.base
	if c.a.dialect != responsesCodex {
		p.MaxOutputTokens = openai.Int(int64(l.Output))
	}
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: items}
	return prepared{estimate: tokens, reduced: tokens < c.history.estimate(), sample: func(ctx context.Context, emit func(delta)) (step, error) {
		return c.sample(ctx, p, emit)
	}}, nil
}

// sample sends a request and records the answer when it is whole.
func (c *responsesConversation) sample(ctx context.Context, p responses.ResponseNewParams, emit func(delta)) (step, error) {
	var response *http.Response
	opts := []option.RequestOption{option.WithResponseInto(&response)}
	if c.session != "" {
		opts = append(opts, option.WithHeader("session_id", c.session))
	}
	stream := c.a.service.NewStreaming(ctx, p, opts...)
	defer func() { _ = stream.Close() }()
	var r responsesReader
	for stream.Next() {
		if err := r.event(stream.Current(), emit); err != nil {
			return step{}, err
		}
	}
	switch err := stream.Err(); {
	case ctx.Err() != nil:
		return step{}, ctx.Err()
	case err != nil && response != nil && response.StatusCode >= http.StatusBadRequest:
		return step{}, requestError(response, err)
	case err != nil:
		return step{}, err
	}
	if !r.ended {
		return step{}, errCutStream
	}
	return c.record(&r), nil
}

// record adds an answer to the history in the order of its items: encrypted
// reasoning stands directly before what it led to. Of an answer that was cut
// only the text is kept.
func (c *responsesConversation) record(r *responsesReader) step {
	s := step{Usage: r.usage, Stop: r.stop, RawStop: r.raw, Reasoning: r.reasoning}
	if cutsOff(r.stop) {
		s.Text, s.CutCalls = r.text.String(), r.cutCalls
		for _, item := range r.items {
			if item.Type == "function_call" {
				s.CutCalls++
			}
		}
		c.addText(s.Text)
		return s
	}
	said := len(r.items)
	for said > 0 && !speaks(r.items[said-1]) {
		said-- // Reasoning is refused without what it led to.
	}
	replayed := 0
	for _, item := range r.items[:said] {
		switch v := item.AsAny().(type) {
		case responses.ResponseReasoningItem:
			if v.EncryptedContent != "" {
				replayed++
				c.addReasoning(v)
			}
		case responses.ResponseOutputMessage:
			text := outputText(v)
			s.Text += text
			c.addText(text)
		case responses.ResponseFunctionToolCall:
			call := tools.Call{ID: c.ids.take(v.CallID), Name: v.Name, Input: NormalizeInput(v.Arguments)}
			s.Calls = append(s.Calls, call)
			c.addCall(call)
		}
	}
	if said > 0 && s.Usage != nil {
		s.AnswerTokens = s.Usage.OutputTokens
		if replayed == 0 {
			s.AnswerTokens = max(0, s.Usage.OutputTokens-s.Usage.ReasoningTokens)
		}
	}
	if len(s.Calls) > 0 {
		s.Stop = StopToolCalls
	}
	return s
}

// speaks reports whether an item of an answer is text or a call.
func speaks(item responses.ResponseOutputItemUnion) bool {
	switch v := item.AsAny().(type) {
	case responses.ResponseFunctionToolCall:
		return true
	case responses.ResponseOutputMessage:
		return outputText(v) != ""
	}
	return false
}

func outputText(m responses.ResponseOutputMessage) string {
	var b strings.Builder
	for _, part := range m.Content {
		b.WriteString(cmp.Or(part.Text, part.Refusal))
	}
	return b.String()
}

func (c *responsesConversation) addReasoning(v responses.ResponseReasoningItem) {
	item := &responses.ResponseReasoningItemParam{ID: v.ID, EncryptedContent: openai.String(v.EncryptedContent), Summary: []responses.ResponseReasoningItemSummaryParam{}}
	tokens := blockOverhead
	for _, s := range v.Summary {
		item.Summary = append(item.Summary, responses.ResponseReasoningItemSummaryParam{Text: s.Text})
		tokens += token.Estimate(s.Text)
	}
	// Encryption and base64 make about four bytes of three; a token of
	// reasoning is about four bytes.
	tokens += len(v.EncryptedContent) * 3 / 16
	c.history.add(responses.ResponseInputItemUnionParam{OfReasoning: item}, tokens)
}

func (a *responsesAdapter) classify(err error) *apierror.Error {
	var e *responsesError
	if errors.As(err, &e) {
		return apierror.Classify(apierror.Raw{Provider: a.cfg.Provider, Code: e.code, Message: e.message, Param: e.param, Body: e.raw, Err: err})
	}
	return classifyOpenAIError(a.cfg.Provider, err)
}
