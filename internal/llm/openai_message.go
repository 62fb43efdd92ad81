package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"keen/internal/llm/token"
	"keen/internal/tools"
)

// reasoningReplay says whether reasoning is sent back.
type reasoningReplay int

const (
	sendReasoning reasoningReplay = iota
	omitReasoning
)

// chatAnswer is an assistant message before it is a native one.
type chatAnswer struct {
	text      string
	reasoning string
	calls     []tools.Call
	replay    reasoningReplay
}

// native makes the message. Its content is null, and there, when nothing was
// said: DeepSeek insists on the field, and gateways refuse blank text.
func (a chatAnswer) native() openai.ChatCompletionMessageParamUnion {
	var m openai.ChatCompletionAssistantMessageParam
	if strings.TrimSpace(a.text) != "" {
		m.Content.OfString = openai.String(a.text)
	} else {
		m.Content = param.NullStruct[openai.ChatCompletionAssistantMessageParamContentUnion]()
	}
	for _, k := range a.calls {
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: k.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: wireName(k.Name), Arguments: string(k.Input),
				},
			},
		})
	}
	// Servers that demand reasoning look for the field in every message with
	// calls, also where the model gave none.
	if a.replay == sendReasoning && (a.reasoning != "" || len(a.calls) > 0) {
		m.SetExtraFields(map[string]any{"reasoning_content": a.reasoning})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &m}
}

// estimate is the size of the message in tokens.
func (a chatAnswer) estimate() int {
	size := blockOverhead + token.Estimate(a.text)
	for _, k := range a.calls {
		size += callTokens(k)
	}
	if a.replay == sendReasoning {
		size += token.Estimate(a.reasoning)
	}
	return size
}

// wireName makes a name that servers accept of one that the model made up:
// they refuse a whole request for one bad character in a past call.
func wireName(name string) string {
	const longest = 64
	if name == "" {
		return "unknown"
	}
	valid := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return valid[:min(len(valid), longest)]
}

// chatTools makes the tools of a request, with their size in tokens.
func chatTools(specs []tools.Spec) ([]openai.ChatCompletionToolUnionParam, int, error) {
	var offered []openai.ChatCompletionToolUnionParam
	size := 0
	for _, s := range specs {
		schema, err := schemaObject(s.Schema)
		if err != nil {
			return nil, 0, fmt.Errorf("offer tool %s: %w", s.Name, err)
		}
		offered = append(offered, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: s.Name, Description: openai.String(s.Description), Parameters: schema,
		}))
		size += specTokens(s)
	}
	return offered, size, nil
}

// schemaObject opens the outermost object of a JSON Schema, as the SDK wants
// it, and leaves the order of everything inside. OpenAI refuses an object
// without properties, so a tool without parameters gets an empty set.
func schemaObject(schema json.RawMessage) (shared.FunctionParameters, error) {
	var fields map[string]json.RawMessage
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &fields); err != nil {
			return nil, fmt.Errorf("read its schema: %w", err)
		}
		if fields == nil {
			return nil, errors.New("read its schema: it is null, not an object")
		}
	}
	object := shared.FunctionParameters{"type": "object", "properties": struct{}{}}
	for key, value := range fields {
		object[key] = value
	}
	return object, nil
}
