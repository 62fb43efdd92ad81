package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// WireGemini is Google's generateContent.
const WireGemini Wire = "gemini"

// geminiWire implements [wire]. Turns alternate, a turn of function responses
// follows each turn of function calls and has as many parts, and calls of the
// running turn carry the thought signature they came with.
type geminiWire struct{}

func (geminiWire) matches(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
}

func (geminiWire) credential(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

func (geminiWire) contentType() string { return "text/event-stream" }

// geminiBody is a request as it reads.
type geminiBody struct {
	System   geminiTurn   `json:"systemInstruction"`
	Contents []geminiTurn `json:"contents"`
	Tools    []struct {
		Functions []json.RawMessage `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		MaxOutputTokens int `json:"maxOutputTokens"`
	} `json:"generationConfig"`
}

type geminiTurn struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string `json:"text"`
	Thought   bool    `json:"thought"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		Name     string         `json:"name"`
		Response map[string]any `json:"response"`
	} `json:"functionResponse"`
}

func (geminiWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: WireGemini, Usage: true, Stream: true}
	model := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	request.Model = strings.TrimSuffix(model, ":streamGenerateContent")
	var b geminiBody
	if err := json.Unmarshal(body, &b); err != nil {
		return request, broken("Invalid JSON payload received: %v", err)
	}
	request.MaxOutput = b.Config.MaxOutputTokens
	for _, part := range b.System.Parts {
		if part.Text != nil {
			request.System += *part.Text
		}
	}
	for _, t := range b.Tools {
		for _, definition := range t.Functions {
			request.Tools = append(request.Tools, namedTool(definition, "name"))
		}
	}
	for _, turn := range b.Contents {
		request.Messages = append(request.Messages, turn.neutral())
	}
	return request, b.check(request.Model)
}

func (t geminiTurn) neutral() Message {
	m := Message{Role: RoleUser}
	if t.Role == "model" {
		m.Role = RoleAssistant
	}
	for _, part := range t.Parts {
		switch {
		case part.Call != nil:
			m.Calls = append(m.Calls, Call{Name: part.Call.Name, Input: string(part.Call.Args)})
		case part.Response != nil:
			output := ""
			for _, key := range []string{"output", "error"} {
				if text, ok := part.Response.Response[key].(string); ok {
					output = text
				}
			}
			m.Results = append(m.Results, Result{Output: output})
		case part.Text != nil && part.Thought:
			m.Reasoning += *part.Text
		case part.Text != nil:
			m.Text += *part.Text
		}
	}
	if len(m.Results) > 0 && m.Text == "" {
		m.Role = RoleTool
	}
	return m
}

// check judges a request by the rules of the wire.
func (b geminiBody) check(model string) *problem {
	n := len(b.Contents)
	switch {
	case n == 0:
		return broken("* GenerateContentRequest.contents: contents is not specified")
	case b.Contents[0].Role != "user":
		return broken("Please ensure that the conversation starts with a user role.")
	case b.Contents[n-1].Role == "model":
		return broken("Please ensure that single turn requests end with a user role or the role field is empty.")
	}
	running := 0
	for i, turn := range b.Contents {
		calls, responses := turn.count()
		if len(turn.Parts) == 0 {
			return broken("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		}
		if responses == 0 && turn.Role != "model" {
			running = i
		}
		before := 0
		if i > 0 {
			if sameSpeaker(b.Contents[i-1].Role, turn.Role) {
				return broken("Please ensure that multiturn requests alternate between user and model.")
			}
			before, _ = b.Contents[i-1].count()
		}
		if responses != before {
			return broken("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
		if calls > 0 && turn.Role != "model" || responses > 0 && turn.Role == "model" {
			return broken("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		for _, part := range turn.Parts {
			if part.Call != nil && !isObject(part.Call.Args) && part.Call.Args != nil {
				return broken("Invalid value at contents[%d]: args is not an object", i)
			}
		}
	}
	return b.checkSignatures(running, model)
}

func sameSpeaker(a, b string) bool { return (a == "model") == (b == "model") }

func (t geminiTurn) count() (calls, responses int) {
	for _, part := range t.Parts {
		if part.Call != nil {
			calls++
		}
		if part.Response != nil {
			responses++
		}
	}
	return calls, responses
}

// checkSignatures demands the signature of the first call of each step of the
// running turn, as Gemini 3 does.
func (b geminiBody) checkSignatures(running int, model string) *problem {
	if !strings.Contains(model, "gemini-3") {
		return nil
	}
	for i, turn := range b.Contents[running:] {
		for _, part := range turn.Parts {
			if part.Call == nil {
				continue
			}
			if part.Signature != signature(part.Call.Name) {
				return broken("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly: contents[%d], function call `%s`.", running+i, part.Call.Name)
			}
			break
		}
	}
	return nil
}

func (geminiWire) reject(p problem) rejection {
	status, name, message := geminiProblem(p)
	return rejection{status: status, body: geminiError(status, name, message)}
}

func geminiError(status int, name, message string) string {
	return mustJSON(map[string]any{"error": map[string]any{"code": status, "message": message, "status": name}})
}

func geminiProblem(p problem) (status int, name, message string) {
	switch p.kind {
	case problemRule:
		return http.StatusBadRequest, "INVALID_ARGUMENT", p.message
	case problemWindow:
		return http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", p.input, p.limit)
	case problemOutput:
		return http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf("max_output_tokens is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", p.output, p.limit, p.output)
	case problemNoKey, problemWrongKey:
		return http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."
	}
	switch p.status {
	case http.StatusTooManyRequests:
		return p.status, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."
	case http.StatusNotFound:
		return p.status, "NOT_FOUND", "models/unknown is not found for API version v1beta"
	case http.StatusServiceUnavailable, 529:
		return http.StatusServiceUnavailable, "UNAVAILABLE", "The model is overloaded. Please try again later."
	}
	return p.status, "INTERNAL", "An internal error has occurred."
}

func (geminiWire) failure(p problem) event {
	status, name, message := geminiProblem(p)
	return event{data: []byte("data: " + geminiError(status, name, message) + "\n\n")}
}

func (geminiWire) events(a answer) []event {
	var events []event
	add := func(part eventPart, candidate map[string]any, usage *Usage) {
		candidate["index"] = 0
		chunk := map[string]any{"candidates": []any{candidate}, "modelVersion": a.request.Model}
		if usage != nil {
			chunk["usageMetadata"] = map[string]int{
				"promptTokenCount": usage.Input, "candidatesTokenCount": usage.Output - usage.Reasoning,
				"thoughtsTokenCount": usage.Reasoning, "cachedContentTokenCount": usage.Cached, "totalTokenCount": usage.Input + usage.Output,
			}
		}
		events = append(events, event{data: []byte("data: " + mustJSON(chunk) + "\n\n"), part: part})
	}
	content := func(part map[string]any) map[string]any {
		return map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}}
	}
	for _, piece := range pieces(a.reply.Reasoning, a.reply.ChunkBytes) {
		add(eventContent, content(map[string]any{"text": piece, "thought": true}), nil)
	}
	for _, piece := range pieces(a.reply.Text, a.reply.ChunkBytes) {
		add(eventContent, content(map[string]any{"text": piece}), nil)
	}
	for i, call := range a.reply.Calls {
		if a.reply.Stop == StopLength && !json.Valid([]byte(call.Input)) {
			continue // Calls are never sent in pieces.
		}
		part := map[string]any{"functionCall": map[string]any{"name": call.Name, "args": json.RawMessage(call.Input)}}
		if i == 0 {
			part["thoughtSignature"] = signature(call.Name)
		}
		add(eventContent, content(part), nil)
	}
	add(eventEnd, map[string]any{"finishReason": geminiStop(a.reply.Stop)}, a.usage)
	return events
}

func geminiStop(s Stop) string {
	switch s {
	case StopEnd, StopToolCalls:
		return "STOP"
	case StopLength:
		return "MAX_TOKENS"
	case StopContentFilter:
		return "SAFETY"
	case StopContextWindow:
		return "MODEL_CONTEXT_WINDOW_EXCEEDED"
	}
	return string(s)
}
