package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// writeFile makes a file or replaces its content.
type writeFile struct{ workspace }

type writeFileInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Spec implements [Tool].
func (writeFile) Spec() Spec {
	return Spec{
		Name: writeFileName,
		Description: "Write a whole file: make a new one, missing directories included, or replace all of an existing one. " +
			"For changes within a file use edit_file.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"File to write, relative to the working directory or absolute"},` +
			`"content":{"type":"string","description":"The whole new content"}},` +
			`"required":["path","content"],"additionalProperties":false}`),
	}
}

// Run implements [Tool].
func (t writeFile) Run(ctx context.Context, input json.RawMessage, _ func(Progress)) (Result, error) {
	in, err := decode[writeFileInput](input)
	if err != nil {
		return Result{}, err
	}
	c, err := t.load(writeFileName, in.Path)
	if err != nil {
		return Result{}, err
	}
	c.after = []byte(in.Content)
	diff, err := t.apply(ctx, c)
	if err != nil {
		return Result{}, err
	}
	lines := strings.Count(in.Content, "\n")
	if in.Content != "" && !strings.HasSuffix(in.Content, "\n") {
		lines++
	}
	did, summary := "Made", plural(lines, "line")
	if c.existed {
		did, summary = "Replaced", changedLines(diff)
	}
	return Result{
		Output:  fmt.Sprintf("%s %s: %s, %d bytes.", did, in.Path, plural(lines, "line"), len(in.Content)),
		Display: Display{Summary: summary, Diff: diff},
	}, nil
}
