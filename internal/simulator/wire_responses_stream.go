package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
)

func (w responsesWire) failure(p problem) event {
	e := w.problem(p)
	if p.kind == problemWindow {
		e.message = "Your input exceeds the context window of this model. Please adjust your input and try again."
	}
	return responsesEvent("response.failed", map[string]any{"response": map[string]any{
		"id": "resp_failed", "object": "response", "status": "failed", "output": []any{},
		"error": map[string]string{"code": e.code, "message": e.message},
	}})
}

func responsesEvent(name string, fields map[string]any) event {
	fields["type"] = name
	return event{data: []byte("event: " + name + "\ndata: " + mustJSON(fields) + "\n\n")}
}

func (w responsesWire) events(a answer) []event {
	if a.reply.Stop == StopContextWindow {
		// This wire knows no such reason to stop; it fails.
		failed := w.failure(problem{kind: problemWindow})
		failed.part = eventEnd
		return []event{failed}
	}
	s := responsesStream{size: a.reply.ChunkBytes, id: fmt.Sprintf("resp_%d", a.request.Number), items: []any{}, encrypted: wantsEncrypted(a.request.Raw)}
	for _, name := range []string{"response.created", "response.in_progress"} {
		s.add(name, map[string]any{"response": map[string]any{"id": s.id, "object": "response", "status": "in_progress", "output": []any{}}})
	}
	if a.reply.Reasoning != "" {
		s.reasoning(a.reply.Reasoning)
	}
	cut := a.reply.Stop == StopLength
	if a.reply.Text != "" {
		s.message(a.reply.Text, itemStatus(cut && len(a.reply.Calls) == 0))
	}
	for i, call := range a.reply.Calls {
		s.call(call, itemStatus(cut && i == len(a.reply.Calls)-1))
	}
	s.end(a)
	return s.events
}

// wantsEncrypted reports whether a request asks for reasoning that can be sent
// back. It is given to nobody else.
func wantsEncrypted(raw []byte) bool {
	var b responsesBody
	return json.Unmarshal(raw, &b) == nil && slices.Contains(b.Include, "reasoning.encrypted_content")
}

// itemStatus is the status of an item that is over.
func itemStatus(cut bool) string {
	if cut {
		return "incomplete"
	}
	return "completed"
}

// responsesStream collects the events of an answer.
type responsesStream struct {
	events    []event
	size      int
	id        string
	encrypted bool
	items     []any
	// from is the id of the reasoning that the next item comes from.
	from string
	part eventPart
}

func (s *responsesStream) add(name string, fields map[string]any) {
	fields["sequence_number"] = len(s.events)
	e := responsesEvent(name, fields)
	e.part = s.part
	s.events = append(s.events, e)
}

// itemID makes the id of the next item.
func (s *responsesStream) itemID(prefix string) string {
	from := s.from
	s.from = ""
	if from != "" {
		return prefix + ledToBy + from
	}
	return fmt.Sprintf("%s_%s_%d", prefix, s.id, len(s.items))
}

func (s *responsesStream) open(item map[string]any) {
	s.add("response.output_item.added", map[string]any{"output_index": len(s.items), "item": item})
}

func (s *responsesStream) done(item map[string]any) {
	s.add("response.output_item.done", map[string]any{"output_index": len(s.items), "item": item})
	s.items = append(s.items, item)
}

// say adds the events of a text that comes in pieces: kind.delta for each and
// kind.done for all, with the fields of place.
func (s *responsesStream) say(kind, whole, text string, place map[string]any) {
	with := func(key, value string) map[string]any {
		fields := map[string]any{key: value, "output_index": len(s.items)}
		for k, v := range place {
			fields[k] = v
		}
		return fields
	}
	for _, piece := range pieces(text, s.size) {
		s.add(kind+".delta", with("delta", piece))
	}
	s.add(kind+".done", with(whole, text))
}

// partEvent adds an event about a part of an item.
func (s *responsesStream) partEvent(name, id, index string, part any) {
	s.add(name, map[string]any{"item_id": id, "output_index": len(s.items), index: 0, "part": part})
}

func (s *responsesStream) reasoning(text string) {
	id := s.itemID("rs")
	part := map[string]string{"type": "summary_text", "text": text}
	s.open(map[string]any{"type": "reasoning", "id": id, "summary": []any{}})
	s.partEvent("response.reasoning_summary_part.added", id, "summary_index", map[string]string{"type": "summary_text", "text": ""})
	s.say("response.reasoning_summary_text", "text", text, map[string]any{"item_id": id, "summary_index": 0})
	s.partEvent("response.reasoning_summary_part.done", id, "summary_index", part)
	item := map[string]any{"type": "reasoning", "id": id, "summary": []any{part}}
	if s.encrypted {
		item["encrypted_content"] = signature(text)
	}
	s.done(item)
	s.from = id
}

func (s *responsesStream) message(text, status string) {
	id := s.itemID("msg")
	part := func(text string) any {
		return map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
	}
	s.open(map[string]any{"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []any{}})
	s.partEvent("response.content_part.added", id, "content_index", part(""))
	s.say("response.output_text", "text", text, map[string]any{"item_id": id, "content_index": 0})
	s.partEvent("response.content_part.done", id, "content_index", part(text))
	s.done(map[string]any{"type": "message", "id": id, "role": "assistant", "status": status, "content": []any{part(text)}})
}

// call adds a call, whose input may be cut.
func (s *responsesStream) call(call Call, status string) {
	id := s.itemID("fc")
	item := func(input, status string) map[string]any {
		return map[string]any{"type": "function_call", "id": id, "call_id": call.ID, "name": call.Name, "arguments": input, "status": status}
	}
	s.open(item("", "in_progress"))
	s.say("response.function_call_arguments", "arguments", call.Input, map[string]any{"item_id": id})
	s.done(item(call.Input, status))
}

func (s *responsesStream) end(a answer) {
	s.part = eventEnd
	response := map[string]any{"id": s.id, "object": "response", "status": "completed", "model": a.request.Model, "output": s.items}
	if a.usage != nil {
		response["usage"] = map[string]any{
			"input_tokens": a.usage.Input, "output_tokens": a.usage.Output, "total_tokens": a.usage.Input + a.usage.Output,
			"input_tokens_details":  map[string]int{"cached_tokens": a.usage.Cached},
			"output_tokens_details": map[string]int{"reasoning_tokens": a.usage.Reasoning},
		}
	}
	reason := string(a.reply.Stop)
	switch a.reply.Stop {
	case StopEnd, StopToolCalls:
		s.add("response.completed", map[string]any{"response": response})
		return
	case StopLength:
		reason = "max_output_tokens"
	}
	response["status"], response["incomplete_details"] = "incomplete", map[string]string{"reason": reason}
	s.add("response.incomplete", map[string]any{"response": response})
}
