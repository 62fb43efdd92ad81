package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// WireGemini is Google's generateContent.
const WireGemini Wire = "gemini"

// geminiWire implements [wire]. It streams server-sent events only.
type geminiWire struct{}

func (geminiWire) matches(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
}

func (geminiWire) credential(r *http.Request) string {
	if key := r.Header.Get("X-Goog-Api-Key"); key != "" {
		return key
	}
	return r.URL.Query().Get("key")
}

func (geminiWire) contentType() string { return "text/event-stream" }

// geminiBody is a request as it reads.
type geminiBody struct {
	System   geminiTurn   `json:"systemInstruction"`
	Contents []geminiTurn `json:"contents"`
	Tools    []struct {
		Functions []json.RawMessage `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		MaxOutputTokens *int `json:"maxOutputTokens"`
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
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	Blob json.RawMessage `json:"inlineData"`
	File json.RawMessage `json:"fileData"`
}

func (geminiWire) parse(r *http.Request, body []byte) (*Request, *problem) {
	request := &Request{Wire: WireGemini, Usage: true, Stream: true}
	model := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	request.Model = strings.TrimSuffix(model, ":streamGenerateContent")
	var b geminiBody
	if err := decodeBody(body, &b); err != nil {
		return request, broken("Invalid JSON payload received: %v", err)
	}
	if limit := b.Config.MaxOutputTokens; limit != nil {
		request.MaxOutput = max(0, *limit)
	}
	for _, part := range b.System.Parts {
		if part.Text != nil {
			request.System += *part.Text
		}
	}
	for _, t := range b.Tools {
		for _, definition := range t.Functions {
			request.Tools = append(request.Tools, namedTool(definition))
		}
	}
	for _, turn := range b.Contents {
		request.Messages = append(request.Messages, turn.neutral())
	}
	if r.URL.Query().Get("alt") != "sse" {
		return request, broken("This server only streams server-sent events: add alt=sse to the address.")
	}
	return request, b.check(request.Model, request.Tools)
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
			m.Results = append(m.Results, Result{Output: geminiOutput(part.Response.Response)})
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

// geminiOutput is the text in a function response, which Google asks to be
// called output or error; what has another form is returned whole.
func geminiOutput(response json.RawMessage) string {
	var fields struct {
		Output *string `json:"output"`
		Error  *string `json:"error"`
	}
	switch err := json.Unmarshal(response, &fields); {
	case err == nil && fields.Error != nil:
		return *fields.Error
	case err == nil && fields.Output != nil:
		return *fields.Output
	}
	return string(response)
}

func (geminiWire) reject(p problem) rejection {
	e := geminiProblem(p)
	return rejection{status: e.status, body: e.body()}
}

// geminiError is an error in Google's form.
type geminiError struct {
	status        int
	name, message string
	// reason is a detail for programs, often empty.
	reason string
}

func (e geminiError) body() string {
	fields := map[string]any{"code": e.status, "message": e.message, "status": e.name}
	if e.reason != "" {
		fields["details"] = []any{map[string]string{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.reason, "domain": "googleapis.com",
		}}
	}
	return mustJSON(map[string]any{"error": fields})
}

func geminiProblem(p problem) geminiError {
	e := geminiError{status: http.StatusBadRequest, name: "INVALID_ARGUMENT"}
	switch p.kind {
	case problemRule:
		e.message = p.message
	case problemWindow:
		needed := p.input
		if needed <= p.limit {
			needed += p.output
		}
		e.message = fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", needed, p.limit)
	case problemOutput:
		e.message = fmt.Sprintf("Unable to submit request because it has a maxOutputTokens value of %d but the supported range is from 1 (inclusive) to %d (exclusive). Update the value and try again.", p.output, p.limit+1)
	case problemNoKey:
		return geminiError{
			status: http.StatusForbidden, name: "PERMISSION_DENIED",
			message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
		}
	case problemWrongKey:
		e.message, e.reason = "API key not valid. Please pass a valid API key.", "API_KEY_INVALID"
	case problemStatus:
		return geminiStatus(p.status)
	}
	return e
}

// geminiStatus is the usual error for a status.
func geminiStatus(status int) geminiError {
	e := geminiError{status: status}
	switch status {
	case http.StatusUnauthorized:
		e.name, e.message = "UNAUTHENTICATED", "Request had invalid authentication credentials."
	case http.StatusForbidden:
		e.name, e.message = "PERMISSION_DENIED", "The caller does not have permission"
	case http.StatusNotFound:
		e.name, e.message = "NOT_FOUND", "The model is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."
	case http.StatusTooManyRequests:
		e.name, e.message = "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."
	case http.StatusServiceUnavailable, statusOverloaded:
		e.name, e.message = "UNAVAILABLE", "The model is overloaded. Please try again later."
	case http.StatusGatewayTimeout:
		e.name, e.message = "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."
	default:
		e.name, e.message = "INTERNAL", "An internal error has occurred. Please retry or report."
		if status < http.StatusInternalServerError {
			e.name, e.message = "INVALID_ARGUMENT", http.StatusText(status)
		}
	}
	return e
}

func (geminiWire) failure(p problem) event {
	return event{data: []byte("data: " + geminiProblem(p).body() + "\n\n")}
}
