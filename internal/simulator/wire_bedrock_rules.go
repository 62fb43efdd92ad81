package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// This file has the rules of ConverseStream, and those of Claude behind it.

// check judges a request by the rules of the wire.
func (b *bedrockBody) check() *problem {
	if p := b.checkParameters(); p != nil {
		return p
	}
	for i, block := range b.System {
		if block.Text != nil && blank(*block.Text) {
			return broken("The text field in the SystemContentBlock object at system.%d is blank. Add text to the text field, and try again.", i)
		}
	}
	rules := bedrockRules{toolsOffered: b.ToolConfig != nil}
	for i, m := range b.Messages {
		if p := rules.message(i, m); p != nil {
			return p
		}
	}
	return b.checkThinking()
}

func (b *bedrockBody) checkParameters() *problem {
	for i, m := range b.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return constraint(m.Role, fmt.Sprintf("messages.%d.member.role", i+1), "satisfy enum value set: [user, assistant]")
		}
	}
	output := 0
	if b.Inference.MaxTokens != nil {
		output = *b.Inference.MaxTokens
	}
	n := len(b.Messages)
	switch {
	case n == 0:
		return broken("The messages field must not be empty.")
	case b.Inference.MaxTokens != nil && output < 1:
		return constraint(fmt.Sprint(output), "inferenceConfig.maxTokens", "have value greater than or equal to 1")
	case b.Messages[0].Role != "user":
		return broken("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	case b.Messages[n-1].Role != "user":
		return broken(modelSays + noPrefill)
	case b.breakpoints() > maxBreakpoints:
		return broken(modelSays+tooManyBreakpoints, maxBreakpoints, b.breakpoints())
	}
	if b.Additional.Thinking.Type == "enabled" {
		if p := checkThinkingBudget(b.Additional.Thinking.Budget, output); p != nil {
			return broken("%s", modelSays+p.message)
		}
	}
	return b.ToolConfig.check()
}

// constraint is the problem of a value that the interface definition does not
// allow. path counts from 1, other than in all other problems.
func constraint(value, path, must string) *problem {
	return broken("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must %s", value, path, must)
}

const namePattern = "satisfy regular expression pattern: [a-zA-Z0-9_-]+"

func (t *bedrockTools) check() *problem {
	if t == nil {
		return nil
	}
	var names []string
	for i, tool := range t.Tools {
		if !isSet(tool.Spec) {
			continue
		}
		var spec struct {
			Name   string `json:"name"`
			Schema struct {
				JSON json.RawMessage `json:"json"`
			} `json:"inputSchema"`
		}
		switch {
		case json.Unmarshal(tool.Spec, &spec) != nil || !chatName.MatchString(spec.Name):
			return constraint(spec.Name, fmt.Sprintf("toolConfig.tools.%d.member.toolSpec.name", i+1), namePattern)
		case !isObjectSchema(spec.Schema.JSON):
			return broken("The value at toolConfig.tools.%d.toolSpec.inputSchema.json.type must be one of the following: object.", i)
		}
		names = append(names, spec.Name)
	}
	if len(names) == 0 {
		return constraint("[]", "toolConfig.tools", "have length greater than or equal to 1")
	}
	if _, twice := firstDuplicate(names); twice {
		return broken(modelSays + "tools: Tool names must be unique.")
	}
	return nil
}

// bedrockRules goes through the messages of one request.
type bedrockRules struct {
	toolsOffered bool

	lastRole string
	// open has the ids of the tool uses of the message before.
	open []string
}

func (c *bedrockRules) message(i int, m bedrockMessage) *problem {
	switch {
	case m.Role == c.lastRole:
		return broken("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
	case len(m.Content) == 0:
		return broken("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", i)
	}
	c.lastRole = m.Role
	var uses, results []string
	texts := 0
	for j, block := range m.Content {
		if p := c.block(i, j, m.Role, block); p != nil {
			return p
		}
		switch {
		case block.Text != nil:
			texts++
		case block.ToolUse != nil:
			uses = append(uses, block.ToolUse.ID)
		case block.ToolResult != nil:
			results = append(results, block.ToolResult.ID)
		}
	}
	if id, twice := firstDuplicate(uses); twice {
		return broken("The toolUse blocks at messages.%d.content contain duplicate Ids: %s", i, id)
	}
	if p := c.results(i, results); p != nil {
		return p
	}
	if texts > 0 && len(results) > 0 {
		// Newer models take it, older ones and those of others do not.
		return broken("messages.%d.content: Conversation blocks and tool result blocks cannot be provided in the same turn.", i)
	}
	c.open = uses
	return nil
}

// results judges whether a message answers the tool uses of the one before.
func (c *bedrockRules) results(i int, results []string) *problem {
	id, twice := firstDuplicate(results)
	switch missing := without(c.open, results); {
	case twice:
		return broken("The toolResult blocks at messages.%d.content contain duplicate Ids: %s", i, id)
	case len(results) > len(c.open):
		return broken("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", i)
	case len(missing) > 0:
		return broken("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, strings.Join(missing, ", "))
	}
	return nil
}

// block judges block j of message i.
func (c *bedrockRules) block(i, j int, role string, block bedrockBlock) *problem {
	at := fmt.Sprintf("messages.%d.content.%d", i, j)
	member := fmt.Sprintf("messages.%d.member.content.%d.member", i+1, j+1)
	switch {
	case (block.ToolUse != nil || block.ToolResult != nil) && !c.toolsOffered:
		return broken("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	case (block.ToolUse != nil || block.Reasoning != nil) && role != "assistant":
		return broken(modelSays+"messages.%d: `tool_use` and `thinking` blocks can only be in `assistant` messages", i)
	case block.ToolResult != nil && role != "user":
		return broken(modelSays+"messages.%d: `tool_result` blocks can only be in `user` messages", i)
	case block.Text != nil && blank(*block.Text):
		return blankText(at)
	case block.ToolUse != nil && !idPattern.MatchString(block.ToolUse.ID):
		return constraint(block.ToolUse.ID, member+".toolUse.toolUseId", namePattern)
	case block.ToolUse != nil && !chatName.MatchString(block.ToolUse.Name):
		return constraint(block.ToolUse.Name, member+".toolUse.name", namePattern)
	case block.ToolUse != nil && !isObject(block.ToolUse.Input):
		return broken("The format of the value at %s.toolUse.input is invalid. Provide a json object for the field and try again.", at)
	case block.ToolResult != nil:
		blanks := func(part bedrockBlock) bool { return part.Text != nil && blank(*part.Text) }
		if k := slices.IndexFunc(block.ToolResult.Content, blanks); k >= 0 {
			return blankText(fmt.Sprintf("%s.toolResult.content.%d", at, k))
		}
	case block.Reasoning != nil && block.Reasoning.Text != nil:
		if t := block.Reasoning.Text; t.Signature != signature(t.Text) {
			return broken(modelSays+badSignature, at)
		}
	}
	return nil
}

func blankText(at string) *problem {
	return broken("The text field in the ContentBlock object at %s is blank. Add text to the text field, and try again.", at)
}

// checkThinking demands the reasoning of a tool use back while its turn runs.
func (b *bedrockBody) checkThinking() *problem {
	n := len(b.Messages)
	if b.Additional.Thinking.Type != "enabled" || n < 2 || b.Messages[n-1].Content[0].ToolResult == nil {
		return nil
	}
	first := b.Messages[n-2].Content[0]
	if first.Reasoning != nil {
		return nil
	}
	found := "text"
	if first.ToolUse != nil {
		found = "tool_use"
	}
	return broken(modelSays+thinkingMissing, n-2, found)
}

// breakpoints counts the cache points, wherever they may stand.
func (b *bedrockBody) breakpoints() int {
	n := 0
	count := func(blocks []bedrockBlock) {
		for _, block := range blocks {
			if isSet(block.CachePoint) {
				n++
			}
		}
	}
	count(b.System)
	for _, m := range b.Messages {
		count(m.Content)
	}
	if b.ToolConfig != nil {
		for _, t := range b.ToolConfig.Tools {
			if isSet(t.CachePoint) {
				n++
			}
		}
	}
	return n
}
