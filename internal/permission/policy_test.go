package permission_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/permission"
)

func TestPolicyChecks(t *testing.T) {
	const allow, ask, deny = permission.VerdictAllow, permission.VerdictAsk, permission.VerdictDeny
	reading := permission.Request{Tool: "read_file", Verdict: allow}
	editing := permission.Request{Tool: "edit_file", Write: true, Reason: "writes to x"}
	outside := permission.Request{Tool: "edit_file", Write: true, Outside: true, Reason: "outside"}
	system := permission.Request{Tool: "edit_file", Write: true, Outside: true, Verdict: deny, Reason: "system"}
	goTest := permission.Request{Tool: "bash", Command: "go test ./...", Commands: []string{"go test ./..."}, Reason: "runs go"}
	removing := permission.Request{Tool: "bash", Command: "rm x", Commands: []string{"rm x"}, Dangerous: true, Reason: "rm"}
	redirect := permission.Request{Tool: "bash", Command: "ls > x", Reason: "writes"}
	several := permission.Request{Tool: "bash", Command: "go test && make", Commands: []string{"go test", "make"}, Reason: "runs go"}

	none := permission.PolicyOptions{}
	yes := permission.PolicyOptions{AllowAll: true}
	bash := permission.PolicyOptions{AllowTools: []string{"bash"}}
	edit := permission.PolicyOptions{AllowTools: []string{"edit_file"}}
	patterns := func(p ...string) permission.PolicyOptions { return permission.PolicyOptions{Patterns: p} }

	for _, c := range []struct {
		name    string
		options permission.PolicyOptions
		request permission.Request
		want    permission.Verdict
	}{
		{"reading inside needs nothing", none, reading, allow},
		{"writing needs a rule", none, editing, ask},
		{"an allowed tool", edit, editing, allow},
		{"an allowed tool may go outside", edit, outside, allow},
		{"but not where it is denied", edit, system, deny},
		{"another tool is not meant", bash, editing, ask},
		{"yes allows what stays inside", yes, editing, allow},
		{"yes allows what is dangerous inside", yes, removing, allow},
		{"yes allows nothing outside", yes, outside, ask},
		{"yes allows nothing that is denied", yes, system, deny},
		{"an allowed bash may do dangerous things", bash, removing, allow},
		{"a pattern with any arguments", patterns("go test *"), goTest, allow},
		{"a pattern without them", patterns("go test"), goTest, ask},
		{"the exact words", patterns("go test ./..."), goTest, allow},
		{"whole words", patterns("go te *"), goTest, ask},
		{"an empty pattern matches nothing", patterns("", " *", "*"), goTest, ask},
		{"all commands must match", patterns("go test *"), several, ask},
		{"each by one of the patterns", patterns("go test *", "make *"), several, allow},
		{"a redirection matches nothing", patterns("ls *", "go test *"), redirect, ask},
		{"a tool's name", patterns("edit_file"), editing, allow},
		{"a tool's name, inside only", patterns("edit_file"), outside, ask},
		{"nothing dangerous by pattern", patterns("rm *", "bash"), removing, ask},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := permission.NewPolicy(c.options).Check(c.request)
			if got != c.want || reason == "" {
				t.Errorf("got %s (%s), want %s", got, reason, c.want)
			}
		})
	}
}

func TestPolicyRefusesAndRemembersWhatItCannotAsk(t *testing.T) {
	p := permission.NewPolicy(permission.PolicyOptions{})
	edit := permission.Request{Tool: "edit_file", Action: "Edit a", Reason: "writes to a"}
	run := permission.Request{Tool: "bash", Action: "Run make", Command: "make", Reason: "runs make"}
	for _, r := range []permission.Request{edit, run, edit, {Tool: "bash", Verdict: permission.VerdictDeny, Reason: "system"}, {Tool: "grep", Verdict: permission.VerdictAllow}} {
		d, err := p.Approve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed != (r.Verdict == permission.VerdictAllow) {
			t.Errorf("%s: allowed=%v", r.Action, d.Allowed)
		}
		if !d.Allowed && !strings.Contains(d.Message, r.Reason) {
			t.Errorf("the model is told %q, which does not say why: %s", d.Message, r.Reason)
		}
	}
	if diff := cmp.Diff([]permission.Request{edit, run}, p.Denied()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPolicyStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := permission.NewPolicy(permission.PolicyOptions{AllowAll: true})
	if d, err := p.Approve(ctx, permission.Request{Tool: "bash"}); !errors.Is(err, context.Canceled) || d.Allowed {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestPolicyIsSafeForParallelUse(t *testing.T) {
	p := permission.NewPolicy(permission.PolicyOptions{})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, _ = p.Approve(t.Context(), permission.Request{Tool: "bash", Action: fmt.Sprint(i % 10)})
			_ = p.Denied()
		})
	}
	all.Wait()
	if got := len(p.Denied()); got != 10 {
		t.Errorf("%d requests are remembered, want 10", got)
	}
}
