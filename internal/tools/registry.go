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
// but for what its sources give, and safe for use by several turns at once.
type Registry struct {
	tools   map[string]Tool
	sources []Source
	around  []Middleware
	offered func(name string) bool
}

// Source gives tools that come and go while a session runs, such as those of a
// server. A tool of a source that is named like another tool is not offered:
// the registry's own come first, then the sources in their order.
type Source interface {
	// Tools returns the present tools. It is called before each turn and for
	// each call, by several goroutines at once, and returns at once.
	Tools() []Tool
}

// Middleware stands around each call: it may look at the call, change it,
// answer it without next, and look at the result. What it answers is bounded
// and completed like a tool's result. It must be safe for concurrent use.
type Middleware func(ctx context.Context, call Call, next func(context.Context, Call) Result) Result

// NewRegistry returns a registry of the given tools. It panics when two have
// the same name.
func NewRegistry(list ...Tool) *Registry {
	r := &Registry{tools: make(map[string]Tool, len(list))}
	for _, t := range list {
		name := t.Spec().Name
		if _, taken := r.tools[name]; taken {
			panic("tools: two tools are named " + name)
		}
		r.tools[name] = t
	}
	return r
}

// WithSource returns a registry that offers the tools of source too.
func (r *Registry) WithSource(source Source) *Registry {
	more := *r
	more.sources = append(slices.Clone(r.sources), source)
	return &more
}

// Around returns a registry whose calls go through m, inside the middleware
// that is there already.
func (r *Registry) Around(m Middleware) *Registry {
	more := *r
	more.around = append(slices.Clone(r.around), m)
	return &more
}

// Only returns a registry of those tools of r whose name keep accepts. It
// never offers more than r.
func (r *Registry) Only(keep func(name string) bool) *Registry {
	less := *r
	before := r.offered
	less.offered = func(name string) bool { return (before == nil || before(name)) && keep(name) }
	return &less
}

// present returns the tools that are offered now, by name.
func (r *Registry) present() map[string]Tool {
	if r == nil {
		return nil
	}
	tools := make(map[string]Tool, len(r.tools))
	add := func(name string, t Tool) {
		if _, taken := tools[name]; !taken && (r.offered == nil || r.offered(name)) {
			tools[name] = t
		}
	}
	for name, t := range r.tools {
		add(name, t)
	}
	for _, source := range r.sources {
		for _, t := range source.Tools() {
			name := t.Spec().Name
			if _, own := r.tools[name]; !own {
				add(name, t)
			}
		}
	}
	return tools
}

// Specs describes the tools, sorted by name so that equal registries make
// byte-equal requests. A nil registry has none.
func (r *Registry) Specs() []Spec {
	var specs []Spec
	for _, t := range r.present() {
		specs = append(specs, t.Spec())
	}
	slices.SortFunc(specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs
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
	next := func(ctx context.Context, call Call) Result { return r.runTool(ctx, call, report) }
	if r != nil {
		for _, m := range slices.Backward(r.around) {
			inner := next
			next = func(ctx context.Context, call Call) Result { return m(ctx, call, inner) }
		}
	}
	return next(ctx, call)
}

// runTool runs the tool of a call and makes its ending a result.
func (r *Registry) runTool(ctx context.Context, call Call, report func(Progress)) Result {
	tool, err := r.find(call)
	if err != nil {
		return Result{Status: StatusError, Output: err.Error(), Display: Display{Summary: "refused"}}
	}
	result, err := tool.Run(ctx, call.Input, report)
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
	tool := r.lookUp(call.Name)
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

// lookUp returns the tool of a name, nil when none is offered.
func (r *Registry) lookUp(name string) Tool {
	switch {
	case r == nil || r.offered != nil && !r.offered(name):
		return nil
	case r.tools[name] != nil:
		return r.tools[name]
	}
	for _, source := range r.sources {
		for _, t := range source.Tools() {
			if t.Spec().Name == name {
				return t
			}
		}
	}
	return nil
}

// maxNames bounds the list of tools in an error, in names.
const maxNames = 40

func (r *Registry) names() string {
	var names []string
	for _, s := range r.Specs() {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	if len(names) > maxNames {
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNames)
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
