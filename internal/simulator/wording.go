package simulator

import (
	"fmt"
	"net/http"
)

// Wording is how a server of the Chat Completions wire says that a request is
// too large.
type Wording int

// The wordings.
const (
	WordingOpenAI Wording = iota
	WordingVLLM
	WordingLMStudio
	WordingLlamaCpp
	WordingOpenRouter
	// WordingNoNumbers states neither size nor limit.
	WordingNoNumbers
)

// overflow renders the problem of a request that is too large.
func (w Wording) overflow(p problem) rejection {
	total := p.input + p.output
	// The servers that do not count the output of a request in name the size
	// that exceeds the window.
	needed := p.input
	if needed <= p.limit {
		needed = total
	}
	var body any
	switch w {
	case WordingVLLM:
		body = chatError{
			Type: "BadRequestError", Param: ptr("input_tokens, max_tokens"), Code: http.StatusBadRequest,
			Message: fmt.Sprintf("This model's maximum context length is %d tokens. However, your request has %d input tokens plus %d 'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(%d, %d))", p.limit, p.input, p.output, p.input, p.output),
		}
	case WordingLMStudio:
		body = fmt.Sprintf("The number of tokens to keep from the initial prompt is greater than the context length (n_keep: %d>= n_ctx: %d). Try to load the model with a larger context length, or provide a shorter input.", needed, p.limit)
	case WordingLlamaCpp:
		body = map[string]any{
			"code": http.StatusBadRequest, "type": "exceed_context_size_error",
			"n_prompt_tokens": needed, "n_ctx": p.limit,
			"message": fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", needed, p.limit),
		}
	case WordingOpenRouter:
		body = map[string]any{
			"code": http.StatusBadRequest, "metadata": map[string]any{"provider_name": nil},
			"message": fmt.Sprintf("This endpoint's maximum context length is %d tokens. However, you requested about %d tokens (%d of text input, %d in the output). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.", p.limit, total, p.input, p.output),
		}
	case WordingNoNumbers:
		body = windowError("Please reduce the length of the messages or completion.")
	default:
		if p.input > p.limit {
			body = windowError(fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", p.limit, p.input))
			break
		}
		body = windowError(fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.", p.limit, total, p.input, p.output))
	}
	return rejection{status: http.StatusBadRequest, body: mustJSON(map[string]any{"error": body})}
}

// windowError is the error that OpenAI has for this.
func windowError(message string) chatError {
	return chatError{Message: message, Type: "invalid_request_error", Param: ptr("messages"), Code: "context_length_exceeded"}
}
