package tools_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"keen/internal/tools"
)

func TestDescribePutsCallsIntoWords(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        tools.Activity
	}{
		{"read_file", `{"path":"internal/x.go"}`, tools.Activity{Label: "Read internal/x.go", Kind: tools.ActivityRead, Subject: "internal/x.go"}},
		{"write_file", `{"path":"x"}`, tools.Activity{Label: "Write x", Kind: tools.ActivityWrite, Subject: "x"}},
		{"edit_file", `{"path":"x"}`, tools.Activity{Label: "Edit x", Kind: tools.ActivityWrite, Subject: "x"}},
		{"bash", `{"command":"go test ./..."}`, tools.Activity{Label: "Run go test ./...", Kind: tools.ActivityCommand, Subject: "go test ./..."}},
		{"bash", `{"command":"a\n\tb\u001b[31mc\u202ed"}`, tools.Activity{Label: "Run a b[31mcd", Kind: tools.ActivityCommand, Subject: "a b[31mcd"}},
		{"grep", `{"pattern":"foo","path":"internal"}`, tools.Activity{Label: `Search "foo" in internal`, Kind: tools.ActivitySearch, Subject: "internal"}},
		{"grep", `{"pattern":"foo"}`, tools.Activity{Label: `Search "foo"`, Kind: tools.ActivitySearch}},
		{"glob", `{"pattern":"**/*.go","path":"."}`, tools.Activity{Label: "Find **/*.go", Kind: tools.ActivitySearch, Subject: "."}},
		{"read_file", `{}`, tools.Activity{Label: "Read a file", Kind: tools.ActivityRead}},
		{"read_file", `{"path":7}`, tools.Activity{Label: "Read a file", Kind: tools.ActivityRead}},
		{"bash", `not json`, tools.Activity{Label: "Run a command", Kind: tools.ActivityCommand}},
		{"web_fetch", `{"url":"https://example.com"}`, tools.Activity{Label: "web_fetch https://example.com", Kind: tools.ActivityOther}},
		{"", `null`, tools.Activity{Label: "unnamed tool", Kind: tools.ActivityOther}},
	} {
		if diff := cmp.Diff(c.want, tools.Describe(c.name, json.RawMessage(c.input))); diff != "" {
			t.Errorf("%s %s: -want +got:\n%s", c.name, c.input, diff)
		}
	}
}

func TestDescribeCutsLabelsAndNotSubjects(t *testing.T) {
	long := strings.Repeat("é", 1000)
	got := tools.Describe("bash", json.RawMessage(`{"command":"`+long+`"}`))
	if got.Subject != long || utf8.RuneCountInString(got.Label) != 160 {
		t.Errorf("label of %d, subject of %d characters", utf8.RuneCountInString(got.Label), utf8.RuneCountInString(got.Subject))
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("bash", []byte(`{"command":"\u0000"}`))
	f.Add("x\x1b]0;\x07", []byte(`{"path":"\xff"}`))
	f.Add("grep", []byte(`[`))
	f.Fuzz(func(t *testing.T, name string, input []byte) {
		a := tools.Describe(name, input)
		for _, s := range []string{a.Label, a.Subject} {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("%q holds control characters", s)
			}
		}
		if a.Label == "" || a.Kind == "" {
			t.Errorf("empty: %+v", a)
		}
	})
}
