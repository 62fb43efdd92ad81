package simulator

import (
	"encoding/json"
	"fmt"
)

// chatChunk is one event of a stream.
type chatChunk struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int          `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	// Usage and Error are left out when they are nil.
	Usage json.RawMessage `json:"usage,omitempty"`
	Error json.RawMessage `json:"error,omitempty"`
}

type chatChoice struct {
	Index  int       `json:"index"`
	Delta  chatDelta `json:"delta"`
	Finish *string   `json:"finish_reason"`
}

type chatDelta struct {
	Role      string         `json:"role,omitempty"`
	Content   *string        `json:"content,omitempty"`
	Reasoning string         `json:"reasoning_content,omitempty"`
	ToolCalls []chatFragment `json:"tool_calls,omitempty"`
}

// chatFragment is a piece of a call; only its first has an id and a name.
type chatFragment struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chatUsage is the usage report of this wire: cached tokens are part of the
// prompt and reasoning is part of the completion.
type chatUsage struct {
	Prompt        int `json:"prompt_tokens"`
	Completion    int `json:"completion_tokens"`
	Total         int `json:"total_tokens"`
	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

var jsonNull = json.RawMessage("null")

// chatStream builds the events of one answer.
type chatStream struct {
	chunk  chatChunk
	events []event
}

func (chatWire) events(a answer) []event {
	s := &chatStream{chunk: chatChunk{
		ID: fmt.Sprintf("chatcmpl-%d", a.request.Number), Object: "chat.completion.chunk",
		Created: created, Model: a.request.Model,
	}}
	if a.usage != nil {
		s.chunk.Usage = jsonNull // In every chunk but the one that has it.
	}
	if f := a.reply.Fault; f != nil && f.Kind == FaultNullErrors {
		s.chunk.Error = jsonNull
	}
	s.delta(chatDelta{Role: "assistant", Content: ptr("")})
	for _, piece := range pieces(a.reply.Reasoning, a.reply.ChunkBytes) {
		s.delta(chatDelta{Reasoning: piece})
	}
	for _, piece := range pieces(a.reply.Text, a.reply.ChunkBytes) {
		s.delta(chatDelta{Content: &piece})
	}
	s.calls(a.reply)
	s.end(a)
	return s.events
}

func (s *chatStream) delta(d chatDelta) {
	s.add(eventContent, chatChoice{Delta: d})
}

func (s *chatStream) add(part eventPart, choices ...chatChoice) {
	chunk := s.chunk
	chunk.Choices = choices
	s.events = append(s.events, event{part: part, data: []byte("data: " + mustJSON(chunk) + "\n\n")})
}

// calls streams parallel calls interleaved: each has its head first, then one
// piece of input at a time.
func (s *chatStream) calls(r Reply) {
	inputs := make([][]string, len(r.Calls))
	longest := 0
	for i, k := range r.Calls {
		head := chatFragment{Index: i, ID: k.ID, Type: "function"}
		head.Function.Name = k.Name
		s.delta(chatDelta{ToolCalls: []chatFragment{head}})
		inputs[i] = pieces(k.Input, r.ChunkBytes)
		longest = max(longest, len(inputs[i]))
	}
	for round := range longest {
		for i, input := range inputs {
			if round < len(input) {
				f := chatFragment{Index: i}
				f.Function.Arguments = input[round]
				s.delta(chatDelta{ToolCalls: []chatFragment{f}})
			}
		}
	}
}

func (s *chatStream) end(a answer) {
	reason := chatFinish(a.reply.Stop)
	s.add(eventEnd, chatChoice{Finish: &reason})
	if u := a.usage; u != nil {
		report := chatUsage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}
		report.PromptDetails.Cached = u.Cached
		report.CompletionDetails.Reasoning = u.Reasoning
		s.chunk.Usage = json.RawMessage(mustJSON(report))
		s.add(eventEnd, []chatChoice{}...)
	}
	s.events = append(s.events, event{part: eventEnd, data: []byte("data: [DONE]\n\n")})
}

// chatFinish is the finish reason of this wire.
func chatFinish(stop Stop) string {
	switch stop {
	case StopEnd:
		return "stop"
	case StopContextWindow:
		return "model_context_window_exceeded"
	}
	return string(stop)
}
