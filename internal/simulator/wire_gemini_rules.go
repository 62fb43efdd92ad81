package simulator

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This file has the rules of generateContent. Today's models take turns of the
// same speaker in a row, earlier ones and Vertex do not.

// check judges a request by the rules of the wire.
func (b *geminiBody) check(model string, offered []Tool) *problem {
	if limit := b.Config.MaxOutputTokens; limit != nil && *limit < 1 {
		return broken("* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.")
	}
	if p := checkGeminiTools(offered); p != nil {
		return p
	}
	n := len(b.Contents)
	switch {
	case n == 0:
		return broken("* GenerateContentRequest.contents: contents is not specified")
	case b.Contents[0].Role == "model" && b.Contents[0].calls() == nil:
		return broken("Please ensure that the conversation starts with a user role.")
	case b.Contents[n-1].Role == "model":
		return broken("Please ensure that multiturn requests ends with a user role or a function response.")
	}
	// running is where the turn that the model works on begins.
	running := 0
	var before geminiTurn
	for i, turn := range b.Contents {
		if p := turn.check(i, before); p != nil {
			return p
		}
		if turn.Role != "model" && turn.responses() == nil {
			running = i
		}
		before = turn
	}
	if strings.Contains(model, "gemini-3") {
		return b.checkSignatures(running)
	}
	return nil
}

// geminiName is what names of functions look like.
var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

func checkGeminiTools(offered []Tool) *problem {
	var names []string
	for i, t := range offered {
		if !geminiName.MatchString(t.Name) {
			return broken("* GenerateContentRequest.tools[0].function_declarations[%d].name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.", i)
		}
		names = append(names, t.Name)
	}
	if name, twice := firstDuplicate(names); twice {
		return broken("Duplicate function declaration found: %s", name)
	}
	return nil
}

// calls and responses are the names of the functions in a turn.
func (t geminiTurn) calls() (names []string) {
	for _, part := range t.Parts {
		if part.Call != nil {
			names = append(names, part.Call.Name)
		}
	}
	return names
}

func (t geminiTurn) responses() (names []string) {
	for _, part := range t.Parts {
		if part.Response != nil {
			names = append(names, part.Response.Name)
		}
	}
	return names
}

// check judges a turn. i is its place, before the turn that it follows, which
// is empty for the first.
func (t geminiTurn) check(i int, before geminiTurn) *problem {
	switch {
	case !slices.Contains([]string{"", "user", "function", "model"}, t.Role):
		return broken("Please use a valid role: user, model.")
	case len(t.Parts) == 0:
		return broken("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
	}
	for j, part := range t.Parts {
		if p := part.check(fmt.Sprintf("contents[%d].parts[%d]", i, j)); p != nil {
			return p
		}
	}
	switch calls, responses, asked := t.calls(), t.responses(), before.calls(); {
	case calls != nil && (i == 0 || t.Role != "model"):
		return broken("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	case responses != nil && (asked == nil || t.Role == "model"):
		return broken("Please ensure that function response turn comes immediately after a function call turn.")
	case i > 0 && (t.Role == "model") == (before.Role == "model"):
		return broken("Please ensure that multiturn requests alternate between user and model.")
	case len(responses) != len(asked):
		return broken("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	case !slices.Equal(responses, asked):
		// Google takes it and confuses the responses, for which it has no
		// ids; a strict server must not.
		return broken("Please ensure that the function responses have the names of the function calls, in their order: %q, not %q.", asked, responses)
	}
	return nil
}

func (p geminiPart) check(at string) *problem {
	switch {
	case p.Call != nil && p.Call.Name == "":
		return broken("* GenerateContentRequest.%s.function_call.name: Name cannot be empty.", at)
	case p.Call != nil && isSet(p.Call.Args) && !isObject(p.Call.Args):
		return broken("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct), %s", at, p.Call.Args)
	case p.Response != nil && p.Response.Name == "":
		return broken("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.", at)
	case p.Response != nil && !isObject(p.Response.Response):
		return broken("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct), %s", at, p.Response.Response)
	case p.Call != nil, p.Response != nil, isSet(p.Blob), isSet(p.File):
		return nil
	case p.Text == nil, *p.Text == "" && p.Signature == "":
		return broken("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
	}
	return nil
}

// noSignature is what Google takes instead of a signature, for calls that come
// from somewhere else.
const noSignature = "skip_thought_signature_validator"

// checkSignatures demands the signature of the first call of each step since
// the turn in place running, as Gemini 3 does.
func (b *geminiBody) checkSignatures(running int) *problem {
	for i, turn := range b.Contents[running:] {
		for _, part := range turn.Parts {
			if part.Call == nil {
				continue
			}
			switch part.Signature {
			case signature(part.Call.Name), noSignature, base64.StdEncoding.EncodeToString([]byte(noSignature)):
			case "":
				return broken("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", part.Call.Name, running+i+1)
			default:
				return broken("Corrupted thought signature.")
			}
			break
		}
	}
	return nil
}
