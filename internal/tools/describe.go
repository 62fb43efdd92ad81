package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ActivityKind says what a call does to its subject.
type ActivityKind string

// The kinds of activity.
const (
	// ActivityRead reads the file that is the subject.
	ActivityRead ActivityKind = "read"
	// ActivityWrite changes the file that is the subject.
	ActivityWrite ActivityKind = "write"
	// ActivityCommand runs the command that is the subject.
	ActivityCommand ActivityKind = "command"
	// ActivitySearch looks for files or text; the subject is where.
	ActivitySearch ActivityKind = "search"
	// ActivityOther is everything else.
	ActivityOther ActivityKind = "other"
)

// Activity is a call in words.
type Activity struct {
	// Label is one line for people, such as "Read internal/x.go". It holds
	// no control characters.
	Label string
	// Kind says what is done to Subject.
	Kind ActivityKind
	// Subject is the path or the command, on one line and without control
	// characters; empty when the call names none.
	Subject string
}

// maxLabel bounds a label, in characters; a subject is never cut.
const maxLabel = 160

// Describe puts a call into words. It accepts any name and any input, also
// what is no JSON, because it describes what a model wrote before anybody has
// validated it.
func Describe(name string, input json.RawMessage) Activity {
	fields := looseFields(input)
	field := func(key string) string { return oneLine(fields[key]) }
	var a Activity
	switch name {
	case readFileName:
		a = Activity{Label: "Read " + orNone(field("path"), "a file"), Kind: ActivityRead, Subject: field("path")}
	case writeFileName:
		a = Activity{Label: "Write " + orNone(field("path"), "a file"), Kind: ActivityWrite, Subject: field("path")}
	case editFileName:
		a = Activity{Label: "Edit " + orNone(field("path"), "a file"), Kind: ActivityWrite, Subject: field("path")}
	case bashName:
		a = Activity{Label: "Run " + orNone(field("command"), "a command"), Kind: ActivityCommand, Subject: field("command")}
	case grepName:
		a = Activity{Label: fmt.Sprintf("Search %q", field("pattern")), Kind: ActivitySearch, Subject: field("path")}
		a.Label += in(field("path"))
	case globName:
		a = Activity{Label: "Find " + orNone(field("pattern"), "files") + in(field("path")), Kind: ActivitySearch, Subject: field("path")}
	default:
		a = Activity{Label: orNone(oneLine(name), "unnamed tool"), Kind: ActivityOther}
		if hint := firstField(fields); hint != "" {
			a.Label += " " + hint
		}
	}
	a.Label = cutRunes(a.Label, maxLabel)
	return a
}

// hintFields are the arguments that say most about an unknown tool's call, the
// best first.
var hintFields = []string{"path", "file_path", "url", "command", "query", "pattern", "name", "tool", "task"}

func firstField(fields map[string]string) string {
	i := slices.IndexFunc(hintFields, func(key string) bool { return fields[key] != "" })
	if i < 0 {
		return ""
	}
	return oneLine(fields[hintFields[i]])
}

// looseFields returns the string arguments of a call, as far as there are any.
func looseFields(input json.RawMessage) map[string]string {
	var raw map[string]any
	if err := json.Unmarshal(input, &raw); err != nil {
		return nil
	}
	fields := make(map[string]string, len(raw))
	for key, value := range raw {
		if s, ok := value.(string); ok {
			fields[key] = s
		}
	}
	return fields
}

func in(path string) string {
	if path == "" || path == "." {
		return ""
	}
	return " in " + path
}

func orNone(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

// oneLine returns s on one line: white space is a single space, control
// characters and those that reorder text are gone, invalid bytes are replaced.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// cutRunes shortens s to at most limit characters, the last of which says that
// it was cut.
func cutRunes(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:limit-1]) + "…"
}
