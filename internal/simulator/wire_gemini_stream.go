package simulator

import "encoding/json"

func (w geminiWire) events(a answer) []event {
	s := geminiStream{answer: a}
	s.texts(a.reply.Reasoning, map[string]any{"thought": true})
	s.texts(a.reply.Text, nil)
	finish := geminiStop(a.reply.Stop)
	signed := false
	for _, call := range a.reply.Calls {
		input := json.RawMessage(call.Input)
		if call.Input == "" {
			input = json.RawMessage("{}")
		}
		if !json.Valid(input) {
			// Calls are never sent in pieces: what is no object is left out.
			if a.reply.Stop != StopLength {
				finish = "MALFORMED_FUNCTION_CALL"
			}
			break
		}
		part := map[string]any{"functionCall": map[string]any{"name": call.Name, "args": input}}
		if !signed {
			part["thoughtSignature"] = signature(call.Name)
			signed = true
		}
		s.content(part)
	}
	if a.reply.Stop == StopContextWindow {
		// This wire knows no such reason to stop; it fails.
		failed := w.failure(problem{kind: problemWindow, input: a.request.InputTokens, limit: a.request.InputTokens - 1})
		failed.part = eventEnd
		return append(s.events, failed)
	}
	s.end(finish)
	return s.events
}

func geminiStop(s Stop) string {
	switch s {
	case StopEnd, StopToolCalls:
		return "STOP"
	case StopLength:
		return "MAX_TOKENS"
	case StopContentFilter:
		return "SAFETY"
	}
	return string(s)
}

// geminiStream collects the events of an answer.
type geminiStream struct {
	answer answer
	events []event
}

// add adds one event, which has one candidate.
func (s *geminiStream) add(part eventPart, candidate map[string]any, usage *Usage) {
	candidate["index"] = 0
	chunk := map[string]any{"candidates": []any{candidate}, "modelVersion": s.answer.request.Model}
	if usage != nil {
		chunk["usageMetadata"] = map[string]int{
			"promptTokenCount": usage.Input, "candidatesTokenCount": usage.Output - usage.Reasoning,
			"thoughtsTokenCount": usage.Reasoning, "cachedContentTokenCount": usage.Cached, "totalTokenCount": usage.Input + usage.Output,
		}
	}
	s.events = append(s.events, event{data: []byte("data: " + mustJSON(chunk) + "\n\n"), part: part})
}

func (s *geminiStream) content(part map[string]any) {
	s.add(eventContent, map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}}, nil)
}

// texts adds a text in pieces, each with the marks.
func (s *geminiStream) texts(text string, marks map[string]any) {
	for _, piece := range pieces(text, s.answer.reply.ChunkBytes) {
		part := map[string]any{"text": piece}
		for k, v := range marks {
			part[k] = v
		}
		s.content(part)
	}
}

func (s *geminiStream) end(finish string) {
	s.add(eventEnd, map[string]any{"finishReason": finish}, s.answer.usage)
}
