package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// InvalidInputKey is the key under which an adapter keeps the arguments of a
// call when they were no JSON object. A call that carries it is refused.
const InvalidInputKey = "invalid_json_arguments"

// Registry holds the tools of a session and runs their calls. It is immutable
// and safe for use by several turns at once.
type Registry struct {
	tools map[string]Tool
	specs []Spec
}

// NewRegistry returns a registry of the given tools. It panics when two have
// the same name.
func NewRegistry(list ...Tool) *Registry {
	r := &Registry{tools: make(map[string]Tool, len(list))}
	for _, t := range list {
		spec := t.Spec()
		if _, taken := r.tools[spec.Name]; taken {
			panic("tools: two tools are named " + spec.Name)
		}
		r.tools[spec.Name] = t
		r.specs = append(r.specs, spec)
	}
	slices.SortFunc(r.specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// Specs describes the tools, sorted by name so that equal registries make
// byte-equal requests. A nil registry has none.
func (r *Registry) Specs() []Spec {
	if r == nil {
		return nil
	}
	return slices.Clone(r.specs)
}

// Run runs one call and returns its one result, whatever happens: unknown
// tools, bad input, errors and panics become results that the model reads.
// report receives output of a running tool, from any goroutine, until Run
// returns; it may be nil.
func (r *Registry) Run(ctx context.Context, call Call, report func(Progress)) (result Result) {
	start := time.Now()
	if report == nil {
		report = func(Progress) {}
	}
	defer func() {
		if p := recover(); p != nil {
			result = Result{Status: StatusError, Output: fmt.Sprintf("The tool %s crashed: %v. Nothing more is known about this call.", call.Name, p), Display: Display{Summary: "crashed"}}
		}
		result.CallID, result.Tool = call.ID, call.Name
		result.Output = clip(strings.ToValidUTF8(result.Output, "\uFFFD"), MaxOutputBytes)
		result.Duration = time.Since(start)
	}()
	if err := ctx.Err(); err != nil {
		return CancelledResult(call)
	}
	tool, err := r.find(call)
	if err != nil {
		return Result{Status: StatusError, Output: err.Error(), Display: Display{Summary: "refused"}}
	}
	result, err = tool.Run(ctx, call.Input, report)
	switch {
	case err == nil && result.Status == "":
		result.Status = StatusSuccess
	case err == nil:
	case errors.Is(err, ErrDenied):
		result.Status, result.Output = StatusDenied, err.Error()
	case ctx.Err() != nil:
		result.Status = StatusCancelled
		result.Output = joinOutput(result.Output, "The user interrupted this call; it may have done a part of its work.")
	default:
		result.Status = StatusError
		result.Output = joinOutput(result.Output, "Error: "+err.Error())
	}
	return result
}

// CancelledResult is the result of a call that never ran because the turn was
// interrupted before it.
func CancelledResult(call Call) Result {
	return Result{
		CallID: call.ID, Tool: call.Name, Status: StatusCancelled,
		Output:  "The user interrupted the turn before this call ran; nothing was done.",
		Display: Display{Summary: "not run"},
	}
}

func (r *Registry) find(call Call) (Tool, error) {
	var tool Tool
	if r != nil {
		tool = r.tools[call.Name]
	}
	if tool == nil {
		return nil, fmt.Errorf("there is no tool named %q; the tools are: %s", call.Name, r.names())
	}
	var input map[string]json.RawMessage
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, fmt.Errorf("the arguments of %s are not a JSON object: %w; call it again with valid JSON", call.Name, err)
	}
	if raw, bad := input[InvalidInputKey]; bad {
		return nil, fmt.Errorf("the arguments of %s were not valid JSON, so nothing was done; call it again with valid JSON instead of %s", call.Name, clip(string(raw), 400))
	}
	return tool, nil
}

func (r *Registry) names() string {
	if r == nil || len(r.specs) == 0 {
		return "none"
	}
	names := make([]string, len(r.specs))
	for i, s := range r.specs {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

func joinOutput(output, note string) string {
	if output == "" {
		return note
	}
	return strings.TrimRight(output, "\n") + "\n\n" + note
}

// clip shortens s to about limit bytes, keeping head and tail on rune
// boundaries and saying how much is missing between them.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit*2/3, limit/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	from := len(s) - tail
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", s[:head], from-head, s[from:])
}
