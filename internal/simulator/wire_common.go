package simulator

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// broken is the problem of a request that breaks a rule of its wire.
func broken(format string, args ...any) *problem {
	return &problem{kind: problemRule, message: fmt.Sprintf(format, args...)}
}

// namedTool reads the name of a tool definition under a key.
func namedTool(definition json.RawMessage, key string) Tool {
	var fields map[string]json.RawMessage
	t := Tool{Definition: definition}
	if json.Unmarshal(definition, &fields) == nil {
		_ = json.Unmarshal(fields[key], &t.Name) // A tool without a name has none.
	}
	return t
}

// isObject reports whether a value is a JSON object.
func isObject(value json.RawMessage) bool {
	trimmed := bytes.TrimSpace(value)
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

// signature is what the simulated provider puts under a piece of reasoning. A
// client that sends the reasoning back changed, or without it, is found out.
func signature(text string) string {
	sum := sha256.Sum256([]byte("simulated reasoning\n" + text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// firstDuplicate is the problem of call ids of which two are equal or one is
// empty.
func firstDuplicate(ids []string, at string) *problem {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if id == "" {
			return broken("%s: a call has no id", at)
		}
		if seen[id] {
			return broken("%s: call ids must be unique, %s is not", at, id)
		}
		seen[id] = true
	}
	return nil
}

// maxCallID is the longest call id that OpenAI takes back, in bytes.
const maxCallID = 64
