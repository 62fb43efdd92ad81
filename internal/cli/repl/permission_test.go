package repl

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/tools"
)

// asker asks the program as a tool does, and collects the answers.
type asker struct {
	approver permission.Approver
	mu       sync.Mutex
	answers  []string
}

func (a *asker) registry(approver permission.Approver) *tools.Registry {
	a.approver = approver
	return tools.NewRegistry()
}

// ask asks in a goroutine of its own.
func (a *asker) ask(p *program, r permission.Request) {
	p.settle()
	ctx := p.m.ctx
	if turns := p.client.all(); len(turns) > 0 {
		ctx = turns[len(turns)-1].ctx
	}
	go func() {
		d, err := a.approver.Approve(ctx, r)
		answer := r.Command + ": " + d.Message
		switch {
		case err != nil:
			answer = r.Command + ": " + err.Error()
		case d.Allowed:
			answer = r.Command + ": allowed"
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answers = append(a.answers, answer)
	}()
	p.settle()
}

// read lets the time go by that a card must have had the keys.
func (p *program) read() { p.pass(typingPause + answerDelay) }

func (a *asker) answered() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers
}

func request(command string) permission.Request {
	return permission.Request{Tool: "bash", Action: "Run a command", Command: command, Commands: []string{command}, Reason: "runs " + command, Pattern: strings.Fields(command)[0] + " *"}
}

func playAsking(t *testing.T, test func(p *program, a *asker), change ...func(o *Options)) {
	t.Helper()
	a := &asker{}
	change = append(change, func(o *Options) { o.NewRegistry = a.registry })
	play(t, func(p *program) {
		p.working()
		p.pass(typingPause) // Nobody types any more.
		test(p, a)
		p.m.stream.release()
		synctest.Wait()
	}, change...)
}

func TestAParallelBatchAsksInOrder(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		for _, command := range []string{"make one", "npm two", "go three"} {
			a.ask(p, request(command))
		}
		p.sees("make one")
		p.sees("2 more waiting")
		p.seesNot("npm two")
		p.read()
		p.key("enter")
		p.sees("npm two")
		p.key("esc")
		p.sees("go three")
		p.pass(answerDelay)
		p.key("enter")
		want := []string{"make one: allowed", "npm two: " + deniedByUser(""), "go three: allowed"}
		if diff := cmp.Diff(want, a.answered()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if p.client.all()[0].ctx.Err() != nil {
			t.Error("Esc on a card interrupted the turn")
		}
		p.seesNot("Allow this?")
	})
}

func TestAllowedForTheSessionIsNotAskedAgain(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		a.ask(p, request("make two"))
		p.read()
		p.key("down", "enter")
		a.ask(p, request("make three"))
		got := slices.Sorted(slices.Values(a.answered())) // The first two are answered at once.
		if diff := cmp.Diff([]string{"make one: allowed", "make three: allowed", "make two: allowed"}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		a.ask(p, request("npm install"))
		p.sees("npm install")
		p.key("esc")
		p.enter("/permissions")
		p.sees("Allowed for this session: make *")
		p.enter("/permissions reset")
		a.ask(p, request("make four"))
		p.sees("Allow this?")
	})
}

func TestAllowedForTheProjectIsStored(t *testing.T) {
	var stored []string
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		p.sees("Allow for this project: make *")
		p.read()
		p.key("down", "down", "enter")
		a.ask(p, request("make two"))
		if diff := cmp.Diff([]string{"make one: allowed", "make two: allowed"}, a.answered()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"make *"}, stored); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	}, func(o *Options) {
		o.AllowProject = func(pattern string) error {
			stored = append(stored, pattern)
			return nil
		}
	})
}

func TestADenialCarriesWhatTheUserSays(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		p.read()
		p.key("down", "down") // To the denial.
		for _, r := range "use go" {
			p.key(string(r))
		}
		p.sees("Deny: use go")
		p.key("enter")
		if got := a.answered(); len(got) != 1 || !strings.HasSuffix(got[0], "The user says: use go") {
			t.Errorf("the answers are %q", got)
		}
	})
}

func TestADangerousCallCanOnlyBeAllowedOnce(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		r := request("rm -rf build")
		r.Dangerous = true
		a.ask(p, r)
		p.sees("hard to undo")
		p.seesNot("Allow for this session")
		p.read()
		p.key("enter")
		a.ask(p, r)
		p.sees("Allow this?")
	})
}

func TestRulesDecideBeforeTheUserIsAsked(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		r := request("make one")
		a.ask(p, r)
		r.Verdict, r.Reason = permission.VerdictDeny, "it is forbidden"
		a.ask(p, r)
		want := []string{"make one: allowed", "make one: " + permission.DeniedMessage("it is forbidden")}
		if diff := cmp.Diff(want, a.answered()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	}, func(o *Options) {
		o.Rules = permission.NewPolicy(permission.PolicyOptions{Patterns: []string{"make *"}})
	})
}

func TestAnInterruptedTurnAsksNothingAnyMore(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		a.ask(p, request("make one"))
		a.ask(p, request("npm two"))
		p.key("ctrl+c")
		p.idle()
		p.seesNot("Allow this?")
		for _, answer := range a.answered() {
			if !strings.HasSuffix(answer, context.Canceled.Error()) {
				t.Errorf("the answer is %q", answer)
			}
		}
	})
}

func TestOutputOfAnApprovedCommandIsShownAndStored(t *testing.T) {
	playAsking(t, func(p *program, a *asker) {
		call := bashCall("2", "make one")
		p.does(llm.StreamEvent{Type: llm.StreamEventTypeToolStarted, Tool: &llm.ToolEvent{Call: call}})
		a.ask(p, request("make one"))
		p.read()
		p.key("enter")
		p.does(llm.StreamEvent{Type: llm.StreamEventTypeToolOutput, Tool: &llm.ToolEvent{Call: call, Output: "built 12 files\n"}})
		p.sees("built 12 files")
		p.does(llm.StreamEvent{Type: llm.StreamEventTypeToolEnded, Tool: &llm.ToolEvent{Call: call, Result: &tools.Result{CallID: "2", Tool: "bash", Status: tools.StatusSuccess, Output: "built 12 files"}}}, done())
		p.sees("built 12 files")
		p.idle()
		events := p.stored()
		activities := events[len(events)-1].Messages
		if n := len(activities[len(activities)-1].ToolActivities); n != 2 {
			t.Errorf("%d calls are stored", n)
		}
	})
}
