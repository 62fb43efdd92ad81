// Package recorded holds errors that providers really sent, with what they mean.
// It is for tests only.
package recorded

import (
	_ "embed" // for the rows
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

//go:embed errors.jsonl
var rows string

// Error is what one provider answered.
type Error struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// API is the wire: chat, responses, codex, anthropic, gemini or bedrock.
	API string `json:"api"`
	// Transport says how it came: http, sse or eventstream.
	Transport string `json:"transport"`
	// Status is the HTTP status, 0 where the report does not tell it.
	Status int    `json:"status"`
	Body   string `json:"body"`
	// Kind is the kind of package apierror that it is.
	Kind string `json:"kind"`
	// Tokens are the counts it states, 0 where it states none.
	Tokens struct {
		Used  int `json:"used"`
		Limit int `json:"limit"`
	} `json:"tokens"`
}

// Errors returns all rows.
func Errors() ([]Error, error) { return decode[Error](rows) }

// decode reads one value after the other.
func decode[T any](text string) ([]T, error) {
	var all []T
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var row T
		err := d.Decode(&row)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(all)+1, err)
		}
		all = append(all, row)
	}
}
