package simulator

import "fmt"

func anthropicEvent(name string, v any) event {
	return event{data: []byte("event: " + name + "\ndata: " + mustJSON(v) + "\n\n")}
}

// events renders an answer. This wire has no way to say no usage: it then says
// that nothing was used.
func (anthropicWire) events(a answer) []event {
	s := anthropicStream{size: a.reply.ChunkBytes}
	var u Usage
	if a.usage != nil {
		u = *a.usage
	}
	s.add("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", a.request.Number), "type": "message", "role": "assistant", "model": a.request.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]int{"input_tokens": u.Input - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0, "output_tokens": min(u.Output, 1)},
	}})
	s.add("ping", map[string]any{})
	if a.reply.Reasoning != "" {
		s.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, a.reply.Reasoning, func(piece string) map[string]any {
			return map[string]any{"type": "thinking_delta", "thinking": piece}
		}, map[string]any{"type": "signature_delta", "signature": signature(a.reply.Reasoning)})
	}
	if a.reply.Text != "" {
		s.block(map[string]any{"type": "text", "text": ""}, a.reply.Text, func(piece string) map[string]any {
			return map[string]any{"type": "text_delta", "text": piece}
		}, nil)
	}
	for _, call := range a.reply.Calls {
		s.block(map[string]any{"type": "tool_use", "id": call.ID, "name": call.Name, "input": map[string]any{}}, call.Input, func(piece string) map[string]any {
			return map[string]any{"type": "input_json_delta", "partial_json": piece}
		}, nil)
	}
	s.part = eventEnd
	s.add("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": claudeStop(a.reply.Stop, "refusal"), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": u.Output, "output_tokens_details": map[string]int{"thinking_tokens": u.Reasoning}},
	})
	s.add("message_stop", map[string]any{})
	return s.events
}

// claudeStop is a reason to stop in the words that Anthropic and Bedrock
// share, but for that of an answer that is not let through.
func claudeStop(s Stop, filtered string) string {
	switch s {
	case StopEnd:
		return "end_turn"
	case StopToolCalls:
		return "tool_use"
	case StopLength:
		return "max_tokens"
	case StopContentFilter:
		return filtered
	case StopContextWindow:
		return "model_context_window_exceeded"
	}
	return string(s)
}

// anthropicStream collects the events of an answer.
type anthropicStream struct {
	events []event
	size   int
	index  int
	part   eventPart
}

func (s *anthropicStream) add(name string, fields map[string]any) {
	fields["type"] = name
	e := anthropicEvent(name, fields)
	e.part = s.part
	s.events = append(s.events, e)
}

// block adds one content block in pieces; last is a delta after them.
func (s *anthropicStream) block(start map[string]any, text string, delta func(string) map[string]any, last map[string]any) {
	s.add("content_block_start", map[string]any{"index": s.index, "content_block": start})
	for _, piece := range pieces(text, s.size) {
		s.add("content_block_delta", map[string]any{"index": s.index, "delta": delta(piece)})
	}
	if last != nil {
		s.add("content_block_delta", map[string]any{"index": s.index, "delta": last})
	}
	s.add("content_block_stop", map[string]any{"index": s.index})
	s.index++
}
