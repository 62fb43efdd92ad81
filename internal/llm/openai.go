package llm

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// This file and its neighbours openai_*.go speak Chat Completions, the
// interface that most providers and local servers offer, each in a dialect of
// its own. Conversation and requests are here, the conversion of messages in
// openai_message.go, the stream in openai_stream.go and openai_calls.go, errors
// in openai_transport.go.

// defaultOpenAIBaseURL is where requests go unless the configuration says
// otherwise.
const defaultOpenAIBaseURL = "https://api.openai.com/v1"

// NewOpenAIClient returns a client for OpenAI's Chat Completions and for every
// server that is compatible with it. It reads nothing from the environment. It
// returns an error for a base URL that is none and for a window that is too
// small.
func NewOpenAIClient(cfg ClientConfig) (*Client, error) {
	a, err := newChatAdapter(cfg)
	if err != nil {
		return nil, err
	}
	return newClient(a, cfg)
}

// chatAdapter implements [adapter].
type chatAdapter struct {
	cfg     ClientConfig
	quirks  Quirks
	service openai.ChatCompletionService
}

func newChatAdapter(cfg ClientConfig) (*chatAdapter, error) {
	base := cfg.BaseURL
	if base == "" {
		base = defaultOpenAIBaseURL
	}
	host, err := baseURLHost(base)
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", cfg.Provider, err)
	}
	a := &chatAdapter{cfg: cfg, quirks: cfg.Quirks}
	if host == "api.openai.com" {
		a.quirks.MaxCompletionTokens = true
		a.quirks.PromptCacheKey = !cfg.Quirks.NoPromptCache
	}
	// The service is built by itself: openai.NewClient would take keys,
	// headers and a base URL from the environment and send them to whatever
	// host is configured.
	a.service = openai.NewChatCompletionService(openAIOptions(cfg, base)...)
	return a, nil
}

// baseURLHost returns the host of a base URL, without its port.
func baseURLHost(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("the base URL %q is not a URL: write it like http://localhost:8080/v1", base)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the base URL %q does not work: write it like http://localhost:8080/v1, with the scheme and without a query", base)
	}
	return strings.ToLower(u.Hostname()), nil
}

// openAIOptions are the SDK's options for the services of OpenAI's module.
func openAIOptions(cfg ClientConfig, base string) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithHTTPClient(withCredential(cfg, bearerHeader)),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream"),
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		opts = append(opts, option.WithHeader(name, cfg.Headers[name]))
	}
	return opts
}

// limits implements [adapter].
func (a *chatAdapter) limits() limits {
	output := a.cfg.MaxOutputTokens
	if output <= 0 {
		output = defaultOutput
	}
	return limits{Window: a.cfg.ContextWindow, Output: output}
}

// start implements [adapter].
func (a *chatAdapter) start(r turnRequest) (conversation, error) {
	offered, size, err := chatTools(r.Specs)
	if err != nil {
		return nil, err
	}
	c := &chatConversation{a: a, tools: offered, sessionID: r.SessionID, effort: openAIEffort(a.cfg.Effort, r), ids: make(callIDs)}
	c.history.fixed = size
	if r.System != "" {
		c.system = []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(r.System)}
		c.history.fixed += blockOverhead + token.Estimate(r.System)
	}
	for _, e := range formatHistory(r.History) {
		switch e.kind {
		case entryUser:
			c.appendUser(e.text)
		case entryAssistant:
			c.appendAnswer(e.text, "", e.calls)
		case entryResults:
			c.appendResults(e.results)
		}
	}
	return c, nil
}

// openAIEffort is the reasoning effort to ask for. A plain answer needs little,
// and "low" is the least that every reasoning model knows.
func openAIEffort(effort string, r turnRequest) string {
	switch effort {
	case "", "none", "minimal", "low":
		return effort
	}
	if r.OneShot {
		return "low"
	}
	return effort
}

// chatConversation implements [conversation].
type chatConversation struct {
	a         *chatAdapter
	system    []openai.ChatCompletionMessageParamUnion
	tools     []openai.ChatCompletionToolUnionParam
	effort    string
	sessionID string
	history   nativeHistory[openai.ChatCompletionMessageParamUnion]
	// ids are the call ids in use.
	ids callIDs
}

// estimate implements [conversation].
func (c *chatConversation) estimate() int { return c.history.estimate() }

// appendUser implements [conversation].
func (c *chatConversation) appendUser(text string) {
	if c.history.endsWithOutput() {
		c.appendAnswer(interruptedMark, "", nil)
	}
	c.history.add(openai.UserMessage(text), blockOverhead+token.Estimate(text))
}

// appendResults implements [conversation].
func (c *chatConversation) appendResults(results []tools.Result) {
	c.history.beginResults()
	for _, r := range results {
		id := r.CallID
		c.history.addOutput(r.Output, blockOverhead+token.Estimate(id), func(output string) openai.ChatCompletionMessageParamUnion {
			return openai.ToolMessage(output, id)
		})
	}
}

// appendAnswer adds what the model said and called.
func (c *chatConversation) appendAnswer(text, reasoning string, calls []tools.Call) {
	for _, k := range calls {
		c.ids[k.ID] = true
	}
	m := chatAnswer{text: text, reasoning: reasoning, calls: calls}
	if !c.a.cfg.ReplayReasoning {
		m.replay = omitReasoning
	}
	c.history.add(m.native(), m.estimate())
}

// prepare implements [conversation].
func (c *chatConversation) prepare(l requestLimits) (prepared, error) {
	messages, size, err := c.history.fit(l.Budget)
	if err != nil {
		return prepared{}, err
	}
	params := openai.ChatCompletionNewParams{
		Model:           c.a.cfg.Model,
		Messages:        slices.Concat(c.system, messages),
		Tools:           c.tools,
		ReasoningEffort: shared.ReasoningEffort(c.effort),
	}
	if c.a.quirks.MaxCompletionTokens {
		params.MaxCompletionTokens = openai.Int(int64(l.Output))
	} else {
		params.MaxTokens = openai.Int(int64(l.Output))
	}
	if !c.a.quirks.NoStreamOptions {
		params.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	if c.a.quirks.PromptCacheKey && c.sessionID != "" {
		params.PromptCacheKey = openai.String(c.sessionID)
	}
	sample := func(ctx context.Context, emit func(delta)) (step, error) {
		r, err := c.a.sample(ctx, params, emit)
		if err != nil {
			return step{}, err
		}
		return c.record(r), nil
	}
	return prepared{sample: sample, estimate: size, reduced: size < c.history.estimate()}, nil
}

// sample sends a request and reads the answer to its end.
func (a *chatAdapter) sample(ctx context.Context, params openai.ChatCompletionNewParams, emit func(delta)) (*chatReader, error) {
	// The SDK's own stream takes "error": null for an error and does not show
	// the end marker, so it hands over the response and the events are read
	// here.
	var response *http.Response
	_, err := a.service.New(ctx, params, option.WithJSONSet("stream", true), option.WithResponseBodyInto(&response))
	if err != nil {
		return nil, requestError(response, err)
	}
	defer func() { _ = response.Body.Close() }()
	r := &chatReader{provider: a.cfg.Provider, emit: emit}
	if err := r.read(response); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return r, nil
}

// record adds a whole answer to the conversation.
func (c *chatConversation) record(r *chatReader) step {
	s := step{
		Text: r.text.String(), Reasoning: r.reasoning.Len(),
		Usage: r.usage, Stop: r.stop(), RawStop: r.finish,
	}
	switch s.Stop {
	case StopLength, StopContextWindow, StopRefusal:
		// The last call is probably torn, and so may be what it belongs to.
		s.CutCalls = len(r.calls.list)
	default:
		s.Calls = r.calls.finished(c.ids)
	}
	if strings.TrimSpace(s.Text) == "" && len(s.Calls) == 0 {
		return s
	}
	if s.CutCalls == 0 {
		s.AnswerTokens = c.a.answerTokens(s)
	}
	c.appendAnswer(s.Text, r.reasoning.String(), s.Calls)
	return s
}

// answerTokens is the provider's count of what stays of an answer.
func (a *chatAdapter) answerTokens(s step) int {
	switch u := s.Usage; {
	case u == nil:
		return 0
	case a.cfg.ReplayReasoning || s.Reasoning == 0 && u.ReasoningTokens == 0:
		return u.OutputTokens
	case u.ReasoningTokens == 0:
		return 0 // The server reasons but does not say how much of it that was.
	default:
		return max(0, u.OutputTokens-u.ReasoningTokens)
	}
}

// classify implements [adapter].
func (a *chatAdapter) classify(err error) *apierror.Error {
	return classifyOpenAIError(a.cfg.Provider, err)
}
