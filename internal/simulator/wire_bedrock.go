package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// WireBedrock is Amazon Bedrock's ConverseStream.
const WireBedrock Wire = "bedrock"

// bedrockWire implements [wire]. Roles alternate, tool blocks need a tool
// configuration, each tool use is answered in the next message, text is never
// blank, and reasoning carries its signature. Answers are framed by AWS's own
// encoder.
type bedrockWire struct{}

func (bedrockWire) matches(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/converse-stream")
}

// credential returns the access key of a signed request, or a bearer token.
func (bedrockWire) credential(r *http.Request) string {
	auth := r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(auth, "Bearer "); ok {
		return token
	}
	_, after, _ := strings.Cut(auth, "Credential=")
	key, _, _ := strings.Cut(after, "/")
	return key
}

func (bedrockWire) contentType() string { return "application/vnd.amazon.eventstream" }

// bedrockBody is a request as it reads.
type bedrockBody struct {
	System   []bedrockBlock `json:"system"`
	Messages []struct {
		Role    string         `json:"role"`
		Content []bedrockBlock `json:"content"`
	} `json:"messages"`
	Inference struct {
		MaxTokens int `json:"maxTokens"`
	} `json:"inferenceConfig"`
	ToolConfig *struct {
		Tools []struct {
			Spec json.RawMessage `json:"toolSpec"`
		} `json:"tools"`
	} `json:"toolConfig"`
	Additional struct {
		Thinking struct {
			Budget int `json:"budget_tokens"`
		} `json:"thinking"`
	} `json:"additionalModelRequestFields"`
}

type bedrockBlock struct {
	Text    *string `json:"text"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	ToolResult *struct {
		ID      string         `json:"toolUseId"`
		Content []bedrockBlock `json:"content"`
	} `json:"toolResult"`
	Reasoning *struct {
		Text struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
	} `json:"reasoningContent"`
	CachePoint json.RawMessage `json:"cachePoint"`
}

func (bedrockWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: WireBedrock, Usage: true, Stream: true}
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	if len(parts) >= 2 {
		request.Model, _ = url.PathUnescape(parts[len(parts)-2]) // A bad escape is no model.
	}
	var b bedrockBody
	if err := json.Unmarshal(body, &b); err != nil {
		return request, broken("Malformed request: %v", err)
	}
	request.MaxOutput = b.Inference.MaxTokens
	for _, block := range b.System {
		if block.Text != nil {
			request.System += *block.Text
		}
	}
	if b.ToolConfig != nil {
		for _, t := range b.ToolConfig.Tools {
			request.Tools = append(request.Tools, namedTool(t.Spec, "name"))
		}
	}
	for _, m := range b.Messages {
		request.Messages = append(request.Messages, neutralBlocks(m.Role, m.Content))
	}
	return request, b.check()
}

func neutralBlocks(role string, blocks []bedrockBlock) Message {
	m := Message{Role: Role(role)}
	for _, block := range blocks {
		switch {
		case block.Text != nil:
			m.Text += *block.Text
		case block.ToolUse != nil:
			m.Calls = append(m.Calls, Call{ID: block.ToolUse.ID, Name: block.ToolUse.Name, Input: string(block.ToolUse.Input)})
		case block.ToolResult != nil:
			output := ""
			for _, part := range block.ToolResult.Content {
				if part.Text != nil {
					output += *part.Text
				}
			}
			m.Results = append(m.Results, Result{CallID: block.ToolResult.ID, Output: output})
		case block.Reasoning != nil:
			m.Reasoning += block.Reasoning.Text.Text
		}
	}
	if len(m.Results) > 0 && m.Text == "" {
		m.Role = RoleTool
	}
	return m
}

// check judges a request by the rules of the wire.
func (b bedrockBody) check() *problem {
	n := len(b.Messages)
	switch {
	case n == 0:
		return broken("The messages field must not be empty.")
	case b.Messages[0].Role != "user":
		return broken("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	case b.Messages[n-1].Role != "user":
		return broken("This model does not support assistant message prefill. The conversation must end with a user message.")
	case b.Additional.Thinking.Budget > 0 && b.Additional.Thinking.Budget >= b.Inference.MaxTokens:
		return broken("`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	var open []string
	for i := range b.Messages {
		if i > 0 && b.Messages[i].Role == b.Messages[i-1].Role {
			return broken("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		}
		var p *problem
		if open, p = b.checkMessage(i, open); p != nil {
			return p
		}
	}
	return nil
}

// checkMessage judges one message. open are the tool uses of the message
// before; it returns those of this one.
func (b bedrockBody) checkMessage(i int, open []string) ([]string, *problem) {
	asked := make(map[string]bool, len(open))
	for _, id := range open {
		asked[id] = true
	}
	var uses []string
	text, results := 0, 0
	for j, block := range b.Messages[i].Content {
		at := fmt.Sprintf("messages.%d.content.%d", i, j)
		switch {
		case (block.ToolUse != nil || block.ToolResult != nil) && b.ToolConfig == nil:
			return nil, broken("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
		case block.Text != nil && strings.TrimSpace(*block.Text) == "":
			return nil, broken("The text field in the ContentBlock object at %s is blank. Add text to the text field, and try again.", at)
		case block.Text != nil:
			text++
		case block.ToolUse != nil:
			if !isObject(block.ToolUse.Input) {
				return nil, broken("The format of the value at %s.toolUse.input is invalid. Provide a json object for the field and try again.", at)
			}
			uses = append(uses, block.ToolUse.ID)
		case block.ToolResult != nil:
			results++
			if !asked[block.ToolResult.ID] {
				return nil, broken("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", i)
			}
			delete(asked, block.ToolResult.ID)
		case block.Reasoning != nil && block.Reasoning.Text.Signature != signature(block.Reasoning.Text.Text):
			return nil, broken("%s: Invalid `signature` in `thinking` block", at)
		}
	}
	switch {
	case len(b.Messages[i].Content) == 0:
		return nil, broken("The content field in the Message object at messages.%d is empty.", i)
	case len(asked) > 0:
		return nil, broken("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, strings.Join(open, ", "))
	case text > 0 && results > 0 && b.Messages[i].Role == "user":
		return nil, broken("messages.%d.content: Conversation blocks and tool result blocks cannot be provided in the same turn.", i)
	}
	return uses, firstDuplicate(uses, fmt.Sprintf("messages.%d", i))
}

func (bedrockWire) reject(p problem) rejection {
	status, name, message := bedrockProblem(p)
	return rejection{status: status, body: mustJSON(map[string]string{"__type": name, "message": message})}
}

func bedrockProblem(p problem) (status int, name, message string) {
	switch p.kind {
	case problemRule:
		return http.StatusBadRequest, "ValidationException", p.message
	case problemWindow:
		if p.input <= p.limit {
			return http.StatusBadRequest, "ValidationException", fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", p.input, p.output, p.limit)
		}
		return http.StatusBadRequest, "ValidationException", fmt.Sprintf("The model returned the following errors: prompt is too long: %d tokens > %d maximum", p.input, p.limit)
	case problemOutput:
		return http.StatusBadRequest, "ValidationException", fmt.Sprintf("The maximum tokens you requested exceeds the model limit of %d. Try again with a maximum tokens value that is lower than %d.", p.limit, p.limit)
	case problemNoKey, problemWrongKey:
		return http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid."
	}
	switch p.status {
	case http.StatusTooManyRequests:
		return p.status, "ThrottlingException", "Too many requests, please wait before trying again."
	case http.StatusNotFound:
		return p.status, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."
	case http.StatusServiceUnavailable, 529:
		return http.StatusServiceUnavailable, "ServiceUnavailableException", "The service is unavailable, please try again."
	}
	return p.status, "InternalServerException", "The system encountered an unexpected error during processing. Try your request again."
}

func (bedrockWire) failure(p problem) event {
	_, name, message := bedrockProblem(p)
	exception := strings.ToLower(name[:1]) + name[1:]
	return event{data: bedrockFrame("exception", exception, map[string]string{"message": message})}
}

// bedrockFrame encodes one message of the stream.
func bedrockFrame(kind, name string, v any) []byte {
	var headers eventstream.Headers
	headers.Set(":message-type", eventstream.StringValue(kind))
	headers.Set(":"+kind+"-type", eventstream.StringValue(name))
	headers.Set(":content-type", eventstream.StringValue("application/json"))
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, eventstream.Message{Headers: headers, Payload: []byte(mustJSON(v))}); err != nil {
		panic(err) // What this package makes always encodes.
	}
	return b.Bytes()
}

func (bedrockWire) events(a answer) []event {
	s := bedrockStream{size: a.reply.ChunkBytes}
	s.add("messageStart", map[string]any{"role": "assistant"})
	if a.reply.Reasoning != "" {
		s.block(nil, a.reply.Reasoning, func(piece string) any {
			return map[string]any{"reasoningContent": map[string]string{"text": piece}}
		}, map[string]any{"reasoningContent": map[string]string{"signature": signature(a.reply.Reasoning)}})
	}
	if a.reply.Text != "" {
		s.block(nil, a.reply.Text, func(piece string) any { return map[string]string{"text": piece} }, nil)
	}
	for _, call := range a.reply.Calls {
		s.block(map[string]any{"toolUse": map[string]string{"toolUseId": call.ID, "name": call.Name}}, call.Input, func(piece string) any {
			return map[string]any{"toolUse": map[string]string{"input": piece}}
		}, nil)
	}
	s.part = eventEnd
	s.add("messageStop", map[string]any{"stopReason": bedrockStop(a.reply.Stop)})
	if u := a.usage; u != nil {
		s.add("metadata", map[string]any{
			"usage":   map[string]int{"inputTokens": u.Input - u.Cached, "outputTokens": u.Output, "totalTokens": u.Input + u.Output, "cacheReadInputTokens": u.Cached, "cacheWriteInputTokens": 0},
			"metrics": map[string]int{"latencyMs": 1},
		})
	}
	return s.events
}

func bedrockStop(s Stop) string {
	switch s {
	case StopEnd:
		return "end_turn"
	case StopToolCalls:
		return "tool_use"
	case StopLength:
		return "max_tokens"
	case StopContentFilter:
		return "content_filtered"
	case StopContextWindow:
		return "model_context_window_exceeded"
	}
	return string(s)
}

// bedrockStream collects the frames of an answer.
type bedrockStream struct {
	events []event
	size   int
	index  int
	part   eventPart
}

func (s *bedrockStream) add(name string, v any) {
	s.events = append(s.events, event{data: bedrockFrame("event", name, v), part: s.part})
}

// block adds one content block in pieces; start is nil for blocks that begin
// without saying so, last is a delta after the pieces.
func (s *bedrockStream) block(start any, text string, delta func(string) any, last any) {
	if start != nil {
		s.add("contentBlockStart", map[string]any{"contentBlockIndex": s.index, "start": start})
	}
	for _, piece := range pieces(text, s.size) {
		s.add("contentBlockDelta", map[string]any{"contentBlockIndex": s.index, "delta": delta(piece)})
	}
	if last != nil {
		s.add("contentBlockDelta", map[string]any{"contentBlockIndex": s.index, "delta": last})
	}
	s.add("contentBlockStop", map[string]any{"contentBlockIndex": s.index})
	s.index++
}
