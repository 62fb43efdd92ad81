package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"keen/internal/filesystem"
	"keen/internal/permission"
	"keen/internal/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a project with the standard tools.
type desk struct {
	t        *testing.T
	dir      string
	home     string
	spill    string
	registry *tools.Registry
	asked    *recorder
}

// recorder answers requests by a policy and keeps them.
type recorder struct {
	policy *permission.Policy
	// before runs before a request is answered.
	before func(permission.Request)

	mu       sync.Mutex
	requests []permission.Request
}

func (r *recorder) Approve(ctx context.Context, q permission.Request) (permission.Decision, error) {
	r.mu.Lock()
	r.requests = append(r.requests, q)
	r.mu.Unlock()
	if r.before != nil {
		r.before(q)
	}
	return r.policy.Approve(ctx, q)
}

// last is the latest request.
func (r *recorder) last() permission.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		return permission.Request{}
	}
	return r.requests[len(r.requests)-1]
}

// newDesk makes a project whose user allows the named tools.
func newDesk(t *testing.T, allow ...string) *desk {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: filepath.Join(base, "project"), home: filepath.Join(base, "home"), spill: filepath.Join(base, "cache", "outputs")}
	for _, dir := range []string{d.dir, d.home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	guard, err := filesystem.NewGuard(d.dir, filesystem.Options{Home: d.home, Readable: []string{d.spill}})
	if err != nil {
		t.Fatal(err)
	}
	d.asked = &recorder{policy: permission.NewPolicy(permission.PolicyOptions{AllowTools: allow})}
	d.registry = tools.NewRegistry(tools.Standard(tools.Options{Guard: guard, Approver: d.asked, SpillDir: d.spill})...)
	return d
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.path(name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *desk) link(target, name string) {
	d.t.Helper()
	if err := os.Symlink(target, d.path(name)); err != nil {
		d.t.Fatal(err)
	}
}

// run runs a call; input is anything that marshals to its arguments.
func (d *desk) run(tool string, input any) tools.Result {
	d.t.Helper()
	return d.runWith(d.t.Context(), tool, input, nil)
}

func (d *desk) runWith(ctx context.Context, tool string, input any, report func(tools.Progress)) tools.Result {
	d.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.registry.Run(ctx, tools.Call{ID: "1", Name: tool, Input: raw}, report)
}

// args are the arguments of a call.
type args = map[string]any

func wantStatus(t *testing.T, r tools.Result, want tools.Status) {
	t.Helper()
	if r.Status != want {
		t.Fatalf("status %s, want %s: %s", r.Status, want, r.Output)
	}
}

func wantIn(t *testing.T, r tools.Result, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.Output, p) {
			t.Errorf("the result does not hold %q:\n%s", p, r.Output)
		}
	}
}

func TestInputIsValidatedByNameAndKind(t *testing.T) {
	d := newDesk(t)
	d.write("a", "x\n")
	for name, c := range map[string]struct {
		tool  string
		input any
		want  []string
	}{
		"missing":         {"read_file", args{}, []string{`"path" is missing`, "path, offset, limit"}},
		"null is missing": {"read_file", args{"path": nil}, []string{`"path" is missing`}},
		"unknown":         {"read_file", args{"path": "a", "file_path": "b"}, []string{`no field "file_path"`}},
		"kind":            {"read_file", args{"path": 1}, []string{`"path" must be a string`}},
		"number":          {"read_file", args{"path": "a", "limit": "many"}, []string{`"limit" must be a whole number`}},
		"fraction":        {"read_file", args{"path": "a", "limit": 1.5}, []string{`"limit" must be a whole number`}},
		"negative":        {"read_file", args{"path": "a", "offset": -1}, []string{"at least 1"}},
		"flag":            {"grep", args{"pattern": "a", "ignore_case": "maybe"}, []string{`must be true or false`}},
		"several":         {"edit_file", args{"path": "a", "old": "b"}, []string{`no field "old"`, `"old_string" is missing`, `"new_string" is missing`}},
		"empty command":   {"bash", args{"command": " "}, []string{"empty"}},
		"timeout":         {"bash", args{"command": "ls", "timeout_ms": 10_000_000}, []string{"timeout_ms must be 1 to 600000"}},
		"mode":            {"grep", args{"pattern": "a", "output_mode": "x"}, []string{"content, files or count"}},
		"expression":      {"grep", args{"pattern": "("}, []string{"regular expression"}},
		"line break":      {"grep", args{"pattern": "a\\nb"}, []string{"line by line"}},
		"glob":            {"glob", args{"pattern": "[a"}, []string{"not a valid pattern"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.run(c.tool, c.input)
			wantStatus(t, r, tools.StatusError)
			wantIn(t, r, c.want...)
		})
	}
}

func TestNumbersAndFlagsMayBeStrings(t *testing.T) {
	d := newDesk(t)
	d.write("a", "ONE\ntwo\nthree\n")
	r := d.run("read_file", args{"path": "a", "offset": "2", "limit": 1.0})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "2\ttwo\n", "Lines 2 to 2 of 3", "offset 3")
	r = d.run("grep", args{"pattern": "one", "ignore_case": "true"})
	wantIn(t, r, "1:ONE")
}

func TestSchemasAreJSONObjectsThatNameTheRequiredFields(t *testing.T) {
	for _, s := range newDesk(t).registry.Specs() {
		var schema struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if schema.Type != "object" || len(schema.Required) == 0 || s.Description == "" {
			t.Errorf("%s: incomplete: %+v", s.Name, schema)
		}
		for _, name := range schema.Required {
			if p := schema.Properties[name]; p.Type == "" || p.Description == "" {
				t.Errorf("%s: %s is required and not described", s.Name, name)
			}
		}
	}
}

func TestReadingThroughALinkThatLeadsOutAsks(t *testing.T) {
	d := newDesk(t)
	d.link("/etc/passwd", "passwd")
	d.write("real.txt", "root:x\n")
	d.link("/etc", "config")
	for tool, input := range map[string]args{
		"read_file": {"path": "passwd"},
		"grep":      {"pattern": "root", "path": "config/passwd"},
		"glob":      {"pattern": "*", "path": "config"},
		"bash":      {"command": "cat passwd"},
	} {
		r := d.run(tool, input)
		wantStatus(t, r, tools.StatusDenied)
		if q := d.asked.last(); !q.Outside || q.Tool != tool || len(q.Paths) != 1 || !strings.HasPrefix(q.Paths[0], "/etc") {
			t.Errorf("%s: asked %+v", tool, q)
		}
	}
	// A search below the project does not follow them.
	r := d.run("grep", args{"pattern": "root"})
	wantIn(t, r, "real.txt")
	if strings.Contains(r.Output, "passwd") {
		t.Errorf("followed the link:\n%s", r.Output)
	}
	if got := len(d.asked.policy.Denied()); got != 4 {
		t.Errorf("%d requests are remembered, want 4", got)
	}
}

func TestWithoutAnApproverOnlyHarmlessThingsAreDone(t *testing.T) {
	dir := t.TempDir()
	r := tools.NewRegistry(tools.Standard(tools.Options{Dir: dir})...)
	run := func(name, input string) tools.Status {
		return r.Run(t.Context(), tools.Call{Name: name, Input: json.RawMessage(input)}, nil).Status
	}
	if got := run("bash", `{"command":"pwd"}`); got != tools.StatusSuccess {
		t.Errorf("pwd: %s", got)
	}
	if got := run("write_file", `{"path":"x","content":""}`); got != tools.StatusDenied {
		t.Errorf("write: %s", got)
	}
}

func TestToolsMayBeUsedInParallel(t *testing.T) {
	d := newDesk(t, "bash", "write_file", "edit_file")
	d.write("shared", "needle\n")
	var all sync.WaitGroup
	for i := range 8 {
		name := string(rune('a' + i))
		all.Go(func() {
			for _, c := range []struct {
				tool  string
				input args
			}{
				{"write_file", args{"path": "dir/" + name, "content": "one\n"}},
				{"edit_file", args{"path": "dir/" + name, "old_string": "one", "new_string": "two"}},
				{"read_file", args{"path": "shared"}},
				{"grep", args{"pattern": "needle", "path": "shared"}},
				{"glob", args{"pattern": "*"}},
				{"bash", args{"command": "seq 1 5000"}},
			} {
				if r := d.run(c.tool, c.input); r.Status != tools.StatusSuccess {
					t.Errorf("%s: %s", c.tool, r.Output)
				}
			}
			if got := d.read("dir/" + name); got != "two\n" {
				t.Errorf("%s holds %q", name, got)
			}
		})
	}
	all.Wait()
}
