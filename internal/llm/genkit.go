package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/status"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/googlegenai"
	"google.golang.org/genai"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// NewGenkitClient returns a client of Google AI through Genkit. Genkit catches
// SIGINT and SIGTERM for the rest of the process, so a program that wants to
// die by them handles them itself.
func NewGenkitClient(ctx context.Context, cfg ClientConfig) (*Client, error) {
	if cfg.Credential == nil {
		return nil, errors.New("Google AI needs an API key: set GEMINI_API_KEY") //nolint:staticcheck // a name
	}
	headers := http.Header{}
	for name, value := range cfg.Headers {
		headers.Set(name, value)
	}
	// The context ends with the set-up, and with it the goroutine in which
	// Genkit waits for signals.
	setUp, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	g := genkit.Init(setUp, genkit.WithPlugins(&googlegenai.GoogleAI{
		// An empty key would be looked up in the environment; the real one is
		// put into each request by the transport.
		APIKey: "set-by-transport", BaseURL: cfg.BaseURL, Headers: headers,
		HTTPClient: streamingClient(cfg, apiKeyHeader("x-goog-api-key")),
	}))
	name := "googleai/" + strings.TrimPrefix(cfg.Model, "models/")
	model := genkit.LookupModel(g, name)
	if model == nil {
		return nil, fmt.Errorf("Genkit does not know the model %s; check its name", cfg.Model) //nolint:staticcheck // a name
	}
	return newClient(&genkitAdapter{cfg: cfg, model: model}, cfg)
}

// genkitAdapter speaks Gemini through Genkit. It calls the model itself and
// not genkit.Generate, which offers tools in random order and so makes equal
// input into unequal requests.
type genkitAdapter struct {
	cfg   ClientConfig
	model ai.Model
}

func (a *genkitAdapter) limits() limits {
	return limits{Window: a.cfg.ContextWindow, Output: cmp.Or(a.cfg.MaxOutputTokens, defaultOutput)}
}

// genkitPart is one part of a message.
type genkitPart = spoken[ai.Role, *ai.Part]

// genkitConversation is the native history of a turn.
type genkitConversation struct {
	a       *genkitAdapter
	system  *ai.Message
	tools   []*ai.ToolDefinition
	history nativeHistory[genkitPart]
	ids     callIDs
	names   map[string]string // tool names by call id: the wire has no ids
	oneShot bool
}

func (a *genkitAdapter) start(r turnRequest) (conversation, error) {
	c := &genkitConversation{a: a, oneShot: r.OneShot, names: make(map[string]string), ids: make(callIDs)}
	if r.System != "" {
		c.system = ai.NewSystemMessage(ai.NewTextPart(r.System))
		c.history.fixed += token.Estimate(r.System)
	}
	for _, s := range r.Specs {
		var schema map[string]any
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", s.Name, err)
		}
		c.tools = append(c.tools, &ai.ToolDefinition{Name: s.Name, Description: s.Description, InputSchema: schema})
		c.history.fixed += specTokens(s)
	}
	writeHistory(c, c.ids, r.History)
	return c, nil
}

func (c *genkitConversation) add(role ai.Role, part *ai.Part, tokens int) {
	c.history.add(genkitPart{role, part}, tokens)
}

func (c *genkitConversation) estimate() int { return c.history.estimate() }

func (c *genkitConversation) appendUser(text string) {
	if c.history.endsWithOutput() {
		c.addText(interruptedMark)
	}
	c.add(ai.RoleUser, ai.NewTextPart(text), token.Estimate(text)+blockOverhead)
}

func (c *genkitConversation) addText(text string) {
	if text != "" {
		c.add(ai.RoleModel, ai.NewTextPart(text), token.Estimate(text)+blockOverhead)
	}
}

func (c *genkitConversation) addCall(call tools.Call) {
	var input map[string]any
	if err := json.Unmarshal(call.Input, &input); err != nil {
		input = map[string]any{} // Input is always a JSON object.
	}
	c.addCallPart(call, ai.NewToolRequestPart(&ai.ToolRequest{Name: wireName(call.Name), Input: input}))
}

// addCallPart adds a call as the part it came in, which carries its thought
// signature.
func (c *genkitConversation) addCallPart(call tools.Call, part *ai.Part) {
	c.names[call.ID] = part.ToolRequest.Name
	c.add(ai.RoleModel, part, callTokens(call)+signatureTokens(part))
}

func (c *genkitConversation) appendResults(results []tools.Result) {
	c.history.beginResults()
	for _, r := range results {
		key := "output"
		if r.Status != tools.StatusSuccess {
			key = "error"
		}
		name := cmp.Or(c.names[r.CallID], r.Tool)
		c.history.addOutput(r.Output, resultOverhead, func(output string) genkitPart {
			return genkitPart{ai.RoleTool, ai.NewToolResponsePart(&ai.ToolResponse{Name: name, Output: map[string]any{key: output}})}
		})
	}
}

func (c *genkitConversation) prepare(l requestLimits) (prepared, error) {
	parts, tokens, err := c.history.fit(l.Budget)
	if err != nil {
		return prepared{}, err
	}
	request := func() *ai.ModelRequest {
		// Made anew for each sample: the plugin may change what it is given.
		r := &ai.ModelRequest{Config: c.config(l.Output), Tools: c.tools}
		if c.system != nil {
			r.Messages = append(r.Messages, c.system)
		}
		for role, content := range speakers(parts) {
			r.Messages = append(r.Messages, &ai.Message{Role: role, Content: content})
		}
		return r
	}
	return prepared{estimate: tokens, reduced: tokens < c.history.estimate(), sample: func(ctx context.Context, emit func(delta)) (step, error) {
		return c.sample(ctx, request(), emit)
	}}, nil
}

// config makes the settings of a request. A one-shot answer thinks as little
// as the setting allows, so that its output is left for the answer.
func (c *genkitConversation) config(output int) *genai.GenerateContentConfig {
	config := &genai.GenerateContentConfig{MaxOutputTokens: int32(output)} //nolint:gosec // a third of a window at most
	effort := c.a.cfg.Effort
	budget, counted := thinkingBudget(effort)
	switch {
	case effort == "":
	case noThinking(effort):
		config.ThinkingConfig = &genai.ThinkingConfig{ThinkingBudget: genai.Ptr(int32(0))}
	case counted:
		most := output / 2
		if c.oneShot {
			most = min(most, 512)
		}
		config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: genai.Ptr(int32(min(budget, most)))} //nolint:gosec // see above
	default:
		if c.oneShot {
			effort = "low"
		}
		config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true, ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(effort))}
	}
	return config
}

// sample sends a request and records the answer when it is whole.
func (c *genkitConversation) sample(ctx context.Context, request *ai.ModelRequest, emit func(delta)) (step, error) {
	reasoning := 0
	ctx, refused := withRefusal(ctx)
	response, err := c.a.model.Generate(ctx, request, func(_ context.Context, chunk *ai.ModelResponseChunk) error {
		for _, p := range chunk.Content {
			switch {
			case p.IsReasoning():
				reasoning += len(p.Text)
				emit(delta{Reasoning: p.Text})
			case p.IsText():
				emit(delta{Text: p.Text})
			}
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return step{}, ctx.Err()
	case err != nil:
		return step{}, refused.explain(err)
	case response.FinishReason == "":
		return step{}, errCutStream
	case malformed(finishReason(response)):
		return step{}, c.a.stumbled("the model garbled its own call ("+finishReason(response)+")", nil)
	}
	return c.record(response, reasoning), nil
}

// record adds an answer to the history. The parts themselves are kept, because
// their signatures are demanded back; thoughts without one are not sent. Of an
// answer that was cut only the text is kept.
func (c *genkitConversation) record(response *ai.ModelResponse, reasoning int) step {
	raw := finishReason(response)
	s := step{Usage: genkitUsage(response.Usage), Stop: genkitStop(response.FinishReason, raw), RawStop: raw, Reasoning: reasoning}
	cut := cutsOff(s.Stop)
	for _, p := range mergeText(response.Message.Content) {
		switch {
		case p.IsReasoning():
		case p.IsText():
			s.Text += p.Text
			c.add(ai.RoleModel, p, token.Estimate(p.Text)+blockOverhead+signatureTokens(p))
		case p.IsToolRequest() && cut:
			s.CutCalls++
		case p.IsToolRequest():
			call := tools.Call{ID: c.ids.take(""), Name: p.ToolRequest.Name, Input: genkitInput(p.ToolRequest.Input)}
			s.Calls = append(s.Calls, call)
			c.addCallPart(call, p)
		}
	}
	if len(s.Calls) > 0 {
		s.Stop = StopToolCalls
	}
	if s.Usage != nil && !cut {
		s.AnswerTokens = max(0, s.Usage.OutputTokens-s.Usage.ReasoningTokens)
	}
	return s
}

// genkitInput is the input of a call, which the server leaves out when it is
// empty.
func genkitInput(input any) json.RawMessage {
	text, err := json.Marshal(input)
	if err != nil || string(text) == "null" { // What came as JSON always marshals.
		return json.RawMessage("{}")
	}
	return NormalizeInput(string(text))
}

// mergeText joins the pieces of text that a stream brought one by one, except
// where a signature belongs to one of them.
func mergeText(parts []*ai.Part) []*ai.Part {
	var merged []*ai.Part
	for _, p := range parts {
		n := len(merged)
		if n > 0 && p.IsText() && merged[n-1].IsText() && len(p.Metadata) == 0 && len(merged[n-1].Metadata) == 0 {
			merged[n-1] = ai.NewTextPart(merged[n-1].Text + p.Text)
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

func signatureTokens(p *ai.Part) int {
	signature, _ := p.Metadata["signature"].([]byte)
	return len(signature) / 4
}

// genkitUsage takes in usage: cached tokens are part of the input, thoughts
// stand beside the output.
func genkitUsage(u *ai.GenerationUsage) *Usage {
	if u == nil || u.InputTokens == 0 {
		return nil
	}
	return &Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens + u.ThoughtsTokens,
		ReasoningTokens: u.ThoughtsTokens, CacheReadTokens: u.CachedContentTokens,
	}
}

// malformed reports whether the model stumbled over its own call; asked again
// it usually does not.
func malformed(reason string) bool {
	return reason == "MALFORMED_FUNCTION_CALL" || reason == "UNEXPECTED_TOOL_CALL"
}

// finishReason digs out the provider's own word.
func finishReason(response *ai.ModelResponse) string {
	custom, _ := response.Custom.(map[string]any)
	if candidates, ok := custom["candidates"].([]*genai.Candidate); ok && len(candidates) > 0 {
		return string(candidates[0].FinishReason)
	}
	return string(response.FinishReason)
}

func genkitStop(reason ai.FinishReason, raw string) StopReason {
	switch {
	case apierror.IsOverflowStop(raw):
		return StopContextWindow
	case reason == ai.FinishReasonStop:
		return StopEnd
	case reason == ai.FinishReasonLength:
		return StopLength
	case reason == ai.FinishReasonBlocked:
		return StopRefusal
	}
	return StopUnknown
}

// stumbled is an error that may not happen again.
func (a *genkitAdapter) stumbled(message string, err error) *apierror.Error {
	return &apierror.Error{Kind: apierror.KindTransient, Provider: a.cfg.Provider, Message: message, Err: err}
}

func (a *genkitAdapter) classify(err error) *apierror.Error {
	raw := apierror.Raw{Provider: a.cfg.Provider, Err: err}
	var e genai.APIError
	var own *status.Error
	switch {
	case errors.As(err, &e):
		raw.Status, raw.Code, raw.Message = e.Code, e.Status, e.Message
		if details, err := json.Marshal(e.Details); err == nil {
			raw.Body = `{"details":` + string(details) + `}`
		}
	case errors.As(err, &own):
		raw.Message = own.Message
	}
	var refused *responseError
	if errors.As(err, &refused) {
		raw.Status, raw.Body, raw.Header = refused.status, refused.body, refused.header
	}
	classified := classifySDK(err, raw)
	var unsent *url.Error
	if classified == nil || classified.Kind != apierror.KindOther || raw.Status != 0 || errors.As(err, &unsent) {
		return classified
	}
	if own == nil || own.Status.HTTPCode() >= http.StatusInternalServerError {
		// Not the server's words: the libraries could not read the stream.
		return a.stumbled(strings.TrimSuffix("the answer could not be read: "+classified.Message, ": "), err)
	}
	return classified
}
