package simulator

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// broken is the problem of a request that breaks a rule of its wire.
func broken(format string, args ...any) *problem {
	return &problem{kind: problemRule, message: fmt.Sprintf(format, args...)}
}

// decodeBody reads a request. Unlike encoding/json, providers refuse text that
// is not UTF-8.
func decodeBody(body []byte, into any) error {
	if !utf8.Valid(body) {
		return errors.New("it is not valid UTF-8")
	}
	return json.Unmarshal(body, into)
}

// namedTool reads the name of a tool definition.
func namedTool(definition json.RawMessage) Tool {
	t := Tool{Definition: definition}
	var fields struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(definition, &fields) == nil {
		t.Name = fields.Name
	}
	return t
}

// isObject reports whether a value is a JSON object.
func isObject(value json.RawMessage) bool {
	trimmed := bytes.TrimSpace(value)
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

// isObjectSchema reports whether a value is the schema of an object, the only
// kind of input that tools have.
func isObjectSchema(value json.RawMessage) bool {
	var schema struct {
		Type string `json:"type"`
	}
	return isObject(value) && json.Unmarshal(value, &schema) == nil && schema.Type == "object"
}

// isSet reports whether a field is there and not null.
func isSet(value json.RawMessage) bool {
	return len(value) > 0 && string(value) != "null"
}

// blank reports whether a text has nothing to read in it.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// signature is what the simulated provider puts under a piece of reasoning. A
// client that sends the reasoning back changed, or without it, is found out.
func signature(text string) string {
	sum := sha256.Sum256([]byte("simulated reasoning\n" + text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// firstDuplicate returns the first value that occurs twice.
func firstDuplicate(values []string) (string, bool) {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return v, true
		}
	}
	return "", false
}

// without returns the values that are not among others, in their order.
func without(values, others []string) []string {
	var left []string
	for _, v := range values {
		if !slices.Contains(others, v) {
			left = append(left, v)
		}
	}
	return left
}

// idPattern is what Anthropic and Bedrock take as the id of a call.
var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// The limits that several providers share.
const (
	// maxCallID is the longest call id that OpenAI takes back, in bytes.
	maxCallID = 64
	// maxBreakpoints is how many marks for its prompt cache Claude takes.
	maxBreakpoints = 4
	// minThinking is the smallest budget for thinking, in tokens.
	minThinking = 1024
)
