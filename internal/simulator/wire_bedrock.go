package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// WireBedrock is Amazon Bedrock's ConverseStream.
const WireBedrock Wire = "bedrock"

// bedrockWire implements [wire].
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
	System    []bedrockBlock   `json:"system"`
	Messages  []bedrockMessage `json:"messages"`
	Inference struct {
		MaxTokens *int `json:"maxTokens"`
	} `json:"inferenceConfig"`
	ToolConfig *bedrockTools `json:"toolConfig"`
	Additional struct {
		Thinking struct {
			Type   string `json:"type"`
			Budget int    `json:"budget_tokens"`
		} `json:"thinking"`
	} `json:"additionalModelRequestFields"`
}

type bedrockMessage struct {
	Role    string         `json:"role"`
	Content []bedrockBlock `json:"content"`
}

// bedrockTools is the tool configuration, whose list also has cache points.
type bedrockTools struct {
	Tools []struct {
		Spec       json.RawMessage `json:"toolSpec"`
		CachePoint json.RawMessage `json:"cachePoint"`
	} `json:"tools"`
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
		// Text is nil for reasoning that is not shown.
		Text *struct {
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
	if err := decodeBody(body, &b); err != nil {
		return request, broken("Malformed request: %v", err)
	}
	if limit := b.Inference.MaxTokens; limit != nil {
		request.MaxOutput = max(0, *limit)
	}
	request.System = bedrockText(b.System)
	if b.ToolConfig != nil {
		for _, t := range b.ToolConfig.Tools {
			if isSet(t.Spec) {
				request.Tools = append(request.Tools, namedTool(t.Spec))
			}
		}
	}
	for _, m := range b.Messages {
		request.Messages = append(request.Messages, m.neutral())
	}
	return request, b.check()
}

// bedrockText joins what blocks say.
func bedrockText(blocks []bedrockBlock) string {
	var b strings.Builder
	for _, block := range blocks {
		if block.Text != nil {
			b.WriteString(*block.Text)
		}
	}
	return b.String()
}

func (m bedrockMessage) neutral() Message {
	n := Message{Role: Role(m.Role), Text: bedrockText(m.Content)}
	for _, block := range m.Content {
		switch {
		case block.ToolUse != nil:
			n.Calls = append(n.Calls, Call{ID: block.ToolUse.ID, Name: block.ToolUse.Name, Input: string(block.ToolUse.Input)})
		case block.ToolResult != nil:
			n.Results = append(n.Results, Result{CallID: block.ToolResult.ID, Output: bedrockText(block.ToolResult.Content)})
		case block.Reasoning != nil && block.Reasoning.Text != nil:
			n.Reasoning += block.Reasoning.Text.Text
		}
	}
	if len(n.Results) > 0 && n.Text == "" {
		n.Role = RoleTool
	}
	return n
}

func (bedrockWire) reject(p problem) rejection {
	status, name, message := bedrockProblem(p)
	return rejection{
		status: status, header: http.Header{"X-Amzn-Errortype": {name}},
		body: mustJSON(map[string]string{"message": message}),
	}
}

// modelSays begins what is not Bedrock's own finding but the model's.
const modelSays = "The model returned the following errors: "

func bedrockProblem(p problem) (status int, name, message string) {
	switch p.kind {
	case problemRule:
		return http.StatusBadRequest, "ValidationException", p.message
	case problemWindow:
		return http.StatusBadRequest, "ValidationException", modelSays + claudeOverflow(p)
	case problemOutput:
		return http.StatusBadRequest, "ValidationException", fmt.Sprintf("The maximum tokens you requested exceeds the model limit of %d. Try again with a maximum tokens value that is lower than %d.", p.limit, p.limit)
	case problemNoKey:
		return http.StatusForbidden, "MissingAuthenticationTokenException", "Missing Authentication Token"
	case problemWrongKey:
		return http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid."
	}
	switch p.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return p.status, "AccessDeniedException", "You don't have access to the model with the specified model ID."
	case http.StatusNotFound:
		return p.status, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."
	case http.StatusRequestTimeout:
		return p.status, "ModelTimeoutException", "The request took too long to process. Processing time exceeded the model timeout length."
	case http.StatusFailedDependency:
		return p.status, "ModelErrorException", "The request failed due to an error while processing the model."
	case http.StatusTooManyRequests:
		return p.status, "ThrottlingException", "Too many requests, please wait before trying again."
	case http.StatusServiceUnavailable, statusOverloaded:
		return p.status, "ServiceUnavailableException", "The service is unavailable, please try again."
	}
	if p.status < http.StatusInternalServerError {
		return p.status, "ValidationException", http.StatusText(p.status)
	}
	return p.status, "InternalServerException", "The system encountered an unexpected error during processing. Try your request again."
}

func (bedrockWire) failure(p problem) event {
	_, name, message := bedrockProblem(p)
	exception := strings.ToLower(name[:1]) + name[1:]
	return event{data: bedrockFrame("exception", exception, map[string]string{"message": message})}
}
