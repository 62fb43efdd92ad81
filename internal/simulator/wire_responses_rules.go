package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// This file has the rules of the Responses API, and those that ChatGPT's door
// for Codex adds.

// minOutput is the smallest output limit that OpenAI takes.
const minOutput = 16

// responsesName is what names of functions look like.
var responsesName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// checkBody judges what a request says beside its items.
func (w responsesWire) checkBody(r *http.Request, b *responsesBody) *problem {
	if w.codex {
		if p := checkCodex(r.Header, b); p != nil {
			return p
		}
	}
	switch {
	case b.Model == "":
		return ruleProblem("model", "Missing required parameter: 'model'.")
	case b.PreviousResponseID != "":
		return ruleProblem("previous_response_id", "Previous response with id '%s' not found.", b.PreviousResponseID)
	case !b.Stream:
		return ruleProblem("stream", "This server only streams: set 'stream' to true.")
	case b.MaxOutputTokens != nil && *b.MaxOutputTokens < minOutput:
		return ruleProblem("max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", minOutput, *b.MaxOutputTokens)
	}
	for i, tool := range b.Tools {
		if p := checkFunction(fmt.Sprintf("tools[%d]", i), tool); p != nil {
			return p
		}
	}
	return nil
}

func checkCodex(header http.Header, b *responsesBody) *problem {
	for _, name := range []string{"chatgpt-account-id", "originator", "OpenAI-Beta"} {
		if header.Get(name) == "" {
			return broken("Missing header: %s", name)
		}
	}
	switch {
	case b.Instructions == "":
		return broken("Instructions are required")
	case b.Store == nil || *b.Store:
		return broken("Store must be set to false")
	case !b.Stream:
		return broken("Stream must be set to true")
	case b.MaxOutputTokens != nil:
		return broken("Unsupported parameter: max_output_tokens")
	}
	return nil
}

func checkFunction(at string, definition json.RawMessage) *problem {
	var f struct {
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	switch err := json.Unmarshal(definition, &f); {
	case err != nil:
		return ruleProblem(at, "Invalid type for '%s': %v", at, err)
	case f.Type != "function":
		return ruleProblem(at+".type", "Invalid value: '%s'. Supported values are: 'function'.", f.Type)
	case f.Name == "":
		// What Chat Completions takes, with the name one level deeper, ends here.
		return ruleProblem(at+".name", "Missing required parameter: '%s.name'.", at)
	case !responsesName.MatchString(f.Name):
		return ruleProblem(at+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '%s'.", at, responsesName)
	case !isObjectSchema(f.Parameters):
		return ruleProblem(at+".parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", f.Name)
	}
	return nil
}

// responsesRules goes through the items of one request.
type responsesRules struct {
	codex bool
	items []responsesItem
	// known has the ids of all calls, open those that have no output yet.
	known, open []string
}

// checkItems judges the conversation.
func (w responsesWire) checkItems(items []responsesItem) *problem {
	if len(items) == 0 {
		return ruleProblem("input", "Missing required parameter: 'input'.")
	}
	rules := responsesRules{codex: w.codex, items: items}
	for i := range items {
		if p := rules.item(i); p != nil {
			return p
		}
	}
	if len(rules.open) > 0 {
		return ruleProblem("input", "No tool output found for function call %s.", rules.open[0])
	}
	if last := items[len(items)-1]; last.Role == string(RoleAssistant) {
		// OpenAI goes on from there; other servers do not.
		return ruleProblem("input", "The input must end with a user message or the output of a tool.")
	}
	return nil
}

func (c *responsesRules) item(i int) *problem {
	item := &c.items[i]
	at := fmt.Sprintf("input[%d]", i)
	switch item.kind() {
	case "message":
		if p := c.message(at, item); p != nil {
			return p
		}
		return c.companion(i)
	case "reasoning":
		return c.reasoning(i)
	case "function_call":
		if p := c.call(at, item); p != nil {
			return p
		}
		return c.companion(i)
	case "function_call_output":
		return c.output(at, item)
	}
	return ruleProblem(at+".type", "Invalid value: '%s'. Supported values are: 'function_call', 'function_call_output', 'message', and 'reasoning'.", item.Type)
}

func (c *responsesRules) message(at string, item *responsesItem) *problem {
	var takes []string
	switch item.Role {
	case "user", "system", "developer":
		takes = []string{"input_text", "input_image", "input_file"}
	case "assistant":
		takes = []string{"output_text", "refusal"}
	default:
		return ruleProblem(at+".role", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", item.Role)
	}
	switch {
	case item.Role == "system" && c.codex:
		return broken("System messages are not allowed")
	case !item.Content.set:
		return ruleProblem(at+".content", "Missing required parameter: '%s.content'.", at)
	}
	for j, part := range item.Content.parts {
		place := fmt.Sprintf("%s.content[%d]", at, j)
		switch {
		case !item.Content.plain && !slices.Contains(takes, part.Type):
			return ruleProblem(place, "Invalid value: '%s'. Supported values are: '%s'.", part.Type, strings.Join(takes, "', '"))
		case part.Text == "" && (item.Content.plain || strings.HasSuffix(part.Type, "_text")):
			return ruleProblem(place, "Invalid '%s.text': empty string. Expected a string with minimum length 1, but got an empty string instead.", place)
		}
	}
	return nil
}

func (c *responsesRules) call(at string, item *responsesItem) *problem {
	switch {
	case item.CallID == "":
		return ruleProblem(at+".call_id", "Missing required parameter: '%s.call_id'.", at)
	case len(item.CallID) > maxCallID:
		return ruleProblem(at+".call_id", "Invalid '%s.call_id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxCallID, len(item.CallID))
	case slices.Contains(c.known, item.CallID):
		return ruleProblem("input", "Duplicate item found with call_id %s. Remove duplicate items from your input and try again.", item.CallID)
	case item.Name == "":
		return ruleProblem(at+".name", "Missing required parameter: '%s.name'.", at)
	case !isObject(json.RawMessage(item.Arguments)):
		return ruleProblem(at+".arguments", "Invalid '%s.arguments': it must be a JSON object.", at)
	}
	c.known, c.open = append(c.known, item.CallID), append(c.open, item.CallID)
	return nil
}

func (c *responsesRules) output(at string, item *responsesItem) *problem {
	switch {
	case item.CallID == "":
		return ruleProblem(at+".call_id", "Missing required parameter: '%s.call_id'.", at)
	case !item.Output.set:
		return ruleProblem(at+".output", "Missing required parameter: '%s.output'.", at)
	case !slices.Contains(c.open, item.CallID):
		return ruleProblem("input", "No tool call found for function call output with call_id %s.", item.CallID)
	}
	c.open = without(c.open, []string{item.CallID})
	return nil
}

// reasoning judges a reasoning item: it is as it was given, and what it led to
// follows.
func (c *responsesRules) reasoning(i int) *problem {
	item := &c.items[i]
	switch {
	case item.EncryptedContent == "":
		p := ruleProblem("input", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", item.ID)
		p.status = http.StatusNotFound
		return p
	case item.EncryptedContent != signature(item.summary()):
		return broken("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", item.ID)
	}
	if i+1 < len(c.items) {
		switch next := &c.items[i+1]; next.kind() {
		case "reasoning", "function_call":
			return nil
		case "message":
			if next.Role == string(RoleAssistant) {
				return nil
			}
		}
	}
	return ruleProblem("input", "Item '%s' of type 'reasoning' was provided without its required following item.", item.ID)
}

// companion judges whether an item that came with reasoning, and says so by its
// id, still stands behind it.
func (c *responsesRules) companion(i int) *problem {
	item := &c.items[i]
	_, reasoning, ok := strings.Cut(item.ID, ledToBy)
	if !ok || i > 0 && c.items[i-1].ID == reasoning {
		return nil
	}
	return ruleProblem("input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", item.ID, item.kind(), reasoning)
}

// ledToBy stands in the id of an item before that of the reasoning it came
// from.
const ledToBy = "_from_"
