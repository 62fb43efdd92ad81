package simulator

import (
	"bytes"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

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
	s.add("messageStop", map[string]any{"stopReason": claudeStop(a.reply.Stop, "content_filtered")})
	if u := a.usage; u != nil {
		s.add("metadata", map[string]any{
			"usage":   map[string]int{"inputTokens": u.Input - u.Cached, "outputTokens": u.Output, "totalTokens": u.Input + u.Output, "cacheReadInputTokens": u.Cached, "cacheWriteInputTokens": 0},
			"metrics": map[string]int{"latencyMs": 1},
		})
	}
	return s.events
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
