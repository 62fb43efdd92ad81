package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"keen/internal/tools"
)

// saying is a tool that answers with fixed words.
type saying struct{ name, words string }

func (s saying) Spec() tools.Spec {
	return tools.Spec{Name: s.name, Description: s.words, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (s saying) Run(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
	return tools.Result{Output: s.words}, nil
}

// shelf is a source whose tools change.
type shelf struct {
	mu    sync.Mutex
	tools []tools.Tool
}

func (s *shelf) Tools() []tools.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

func (s *shelf) set(list ...tools.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = list
}

func specNames(r *tools.Registry) string {
	var names []string
	for _, s := range r.Specs() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func say(r *tools.Registry, name string) tools.Result {
	return r.Run(context.Background(), tools.Call{ID: "1", Name: name, Input: json.RawMessage(`{}`)}, nil)
}

func TestToolsOfASourceComeAndGo(t *testing.T) {
	source := &shelf{}
	r := tools.NewRegistry(saying{"b", "own"}).WithSource(source)
	if got := specNames(r); got != "b" {
		t.Fatalf("tools before = %q", got)
	}
	source.set(saying{"c", "theirs"}, saying{"a", "theirs"})
	if got := specNames(r); got != "a b c" {
		t.Errorf("tools = %q, want them sorted by name", got)
	}
	if got := say(r, "a"); got.Output != "theirs" || got.Status != tools.StatusSuccess {
		t.Errorf("a = %+v", got)
	}
	source.set()
	if got := say(r, "a"); got.Status != tools.StatusError || !strings.Contains(got.Output, "the tools are: b") {
		t.Errorf("a tool that is gone = %+v, want an error that names the others", got)
	}
}

func TestASourceCannotTakeTheNameOfAnotherTool(t *testing.T) {
	first, second := &shelf{}, &shelf{}
	first.set(saying{"own", "forged"}, saying{"x", "first"})
	second.set(saying{"x", "second"})
	r := tools.NewRegistry(saying{"own", "real"}).WithSource(first).WithSource(second)
	if got := say(r, "own").Output; got != "real" {
		t.Errorf("own = %q", got)
	}
	if got := say(r, "x").Output; got != "first" {
		t.Errorf("x = %q", got)
	}
	if got := specNames(r); got != "own x" {
		t.Errorf("tools = %q", got)
	}
	without := r.Only(func(name string) bool { return name == "x" })
	if got := specNames(without); got != "x" {
		t.Errorf("tools = %q", got)
	}
	if got := say(r.Only(func(string) bool { return false }), "own"); got.Status != tools.StatusError {
		t.Errorf("a tool that is not offered = %+v", got)
	}
}

func TestASmallerRegistryNeverOffersMore(t *testing.T) {
	r := tools.NewRegistry(saying{"a", ""}, saying{"b", ""}).
		Only(func(name string) bool { return name == "a" }).
		Only(func(string) bool { return true })
	if got := specNames(r); got != "a" {
		t.Errorf("tools = %q", got)
	}
	if got := say(r, "b"); got.Status != tools.StatusError {
		t.Errorf("b = %+v", got)
	}
}

func TestMiddlewareStandsAroundEachCall(t *testing.T) {
	var seen []string
	trace := func(name string) tools.Middleware {
		return func(ctx context.Context, call tools.Call, next func(context.Context, tools.Call) tools.Result) tools.Result {
			seen = append(seen, name+" before "+call.Name)
			result := next(ctx, call)
			seen = append(seen, name+" after "+result.Output)
			return result
		}
	}
	r := tools.NewRegistry(saying{"a", "word"}).Around(trace("outer")).Around(trace("inner"))
	result := say(r, "a")
	want := []string{"outer before a", "inner before a", "inner after word", "outer after word"}
	if !slices.Equal(seen, want) {
		t.Errorf("order = %q, want %q", seen, want)
	}
	if result.CallID != "1" || result.Tool != "a" {
		t.Errorf("result = %+v, want it completed", result)
	}
}

func TestMiddlewareMayAnswerAndChangeACall(t *testing.T) {
	r := tools.NewRegistry(saying{"a", "a ran"}, saying{"b", "b ran"}).Around(
		func(ctx context.Context, call tools.Call, next func(context.Context, tools.Call) tools.Result) tools.Result {
			if call.Name == "a" {
				return tools.Result{Status: tools.StatusDenied, Output: "blocked"}
			}
			call.Name = "a"
			return next(ctx, call)
		})
	if got := say(r, "a"); got.Status != tools.StatusDenied || got.Output != "blocked" {
		t.Errorf("a = %+v", got)
	}
	if got := say(r, "b"); got.Output != "a ran" || got.Tool != "b" {
		t.Errorf("b = %+v", got)
	}
	panicking := r.Around(func(context.Context, tools.Call, func(context.Context, tools.Call) tools.Result) tools.Result {
		panic("oops")
	})
	if got := say(panicking, "b"); got.Status != tools.StatusError || !strings.Contains(got.Output, "crashed") {
		t.Errorf("a middleware that panics = %+v", got)
	}
}
