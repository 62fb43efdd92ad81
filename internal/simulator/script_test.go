package simulator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"keen/internal/simulator"
)

const instruction = "The data ends here. Now summarise the conversation. Output only the structured summary."

// compactionBody is a request for a summary of a transcript.
func compactionBody(transcript string) object {
	body := chatBody(say("system", "You write summaries."), say("user", "The transcript of the conversation.\n"+transcript+"\n"+instruction))
	return with(body, "tools", nil)
}

func TestRequestsForSummariesAreRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		body object
		want bool
	}{
		"a transcript":                 {compactionBody("<keen_user>\nHello."), true},
		"a long one":                   {compactionBody(strings.Repeat("line\n", 20000)), true},
		"with a complaint behind it":   {compactionBody("Hello.\n" + instruction + "\n\nYour previous summary could not be used."), true},
		"with tools":                   {with(compactionBody("Hello."), "tools", []object{toolDefinition("read")}), false},
		"a question without tools":     {with(chatBody(hello), "tools", nil), false},
		"a word long before the end":   {with(chatBody(say("user", "A summary of the transcript. "+strings.Repeat("x", 8000))), "tools", nil), false},
		"a conversation about summary": {with(chatBody(say("user", "Write a summary of main.go.")), "tools", nil), false},
	} {
		server := start(t, simulator.Options{})
		server.post(c.body)
		if got := server.last().Request.Compaction(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWrappersAreCountedInUserMessages(t *testing.T) {
	wrapped := "<compacted_context>\nA summary.\n</compacted_context>\n\n<last_user_message>\nDo it.\n</last_user_message>"
	c := start(t, simulator.Options{})
	c.post(chatBody(hello, say("assistant", "<compacted_context>"), say("user", wrapped)))
	r := c.last().Request
	if r.Wrappers() != 1 || strings.TrimSpace(r.Wrapper()) != "A summary." || !r.Contains("Do it.") || r.Contains("Undo it.") {
		t.Errorf("%d wrappers, the last is %q", r.Wrappers(), r.Wrapper())
	}
	c.post(chatBody(say("user", wrapped+"\n\n"+strings.ReplaceAll(wrapped, "A", "Another"))))
	if r := c.last().Request; r.Wrappers() != 2 || strings.TrimSpace(r.Wrapper()) != "Another summary." {
		t.Errorf("%d wrappers, the last is %q", r.Wrappers(), r.Wrapper())
	}
	c.post(chatBody(hello))
	if r := c.last().Request; r.Wrappers() != 0 || r.Wrapper() != "" {
		t.Errorf("%d wrappers in a request without", r.Wrappers())
	}
}

func TestASequenceGivesItsRepliesInOrder(t *testing.T) {
	script := simulator.NewSequence(simulator.Text("one"), simulator.Text("two"))
	c := start(t, simulator.Options{Script: script})
	texts := func(body object) string {
		r := c.post(body)
		if r.status != 200 {
			return r.body
		}
		got, _ := readStream(t, r.body)
		return got.Text
	}
	if got := texts(chatBody(hello)); got != "one" {
		t.Errorf("first: %q", got)
	}
	if got := texts(compactionBody("Hello.")); !strings.HasPrefix(got, "## Goal\n") || !strings.Contains(got, "## Immediate next action\n") {
		t.Errorf("summary: %q", got)
	}
	script.Summary = func(*simulator.Request) simulator.Reply { return simulator.Text("a summary") }
	if got := texts(compactionBody("Hello.")); got != "a summary" {
		t.Errorf("summary: %q", got)
	}
	if got := texts(chatBody(hello)); got != "two" {
		t.Errorf("second: %q", got)
	}
	if got := texts(chatBody(hello)); !strings.Contains(got, "the script has 2 replies and none for request 5") {
		t.Errorf("third: %q", got)
	}
}

func TestSplitSendsSummariesToAScriptOfTheirOwn(t *testing.T) {
	parent := simulator.NewSequence(simulator.Text("an answer"))
	summaries := simulator.NewSequence()
	summaries.Summary = func(*simulator.Request) simulator.Reply { return simulator.Text("a summary") }
	c := start(t, simulator.Options{Script: simulator.Split(parent, summaries)})
	if got, _ := readStream(t, c.post(compactionBody("Hello.")).body); got.Text != "a summary" {
		t.Errorf("summary: %q", got.Text)
	}
	if got, _ := readStream(t, c.post(chatBody(hello)).body); got.Text != "an answer" {
		t.Errorf("parent: %q", got.Text)
	}
}

func TestASummaryListsTheLatestWorkThatFits(t *testing.T) {
	s := simulator.Summary{Goal: "Read all files.", Progress: "Half of them.", Next: "Read the next file."}
	for i := range 500 {
		s.Done = append(s.Done, fmt.Sprintf("Read file number %d,\nas asked", i))
	}
	text := s.Text(300)
	if got := simulator.CountTokens(text); got > 300 || got < 250 {
		t.Errorf("%d tokens, want nearly 300", got)
	}
	for _, part := range []string{s.Goal, s.Progress, s.Next, "- Read file number 498, as asked\n- Read file number 499, as asked\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	if strings.Contains(text, "number 1,") {
		t.Error("the oldest work is listed")
	}
	if got := (simulator.Summary{}).Text(10); strings.Count(got, "(none)") != 4 {
		t.Errorf("empty summary: %q", got)
	}
}

// agent is a client that works as an agent does: it sends what it has, runs
// the calls, and asks for a summary when told to.
type agent struct {
	*client
	messages []object
	task     string
	// steps are the inputs of the calls it ran.
	steps []string
}

func newAgent(c *client, task string) *agent {
	return &agent{client: c, task: task, messages: []object{say("system", "You work."), say("user", task)}}
}

// errLost says that an answer did not arrive whole.
var errLost = errors.New("the answer is lost")

// step sends one request and runs what it asks for. It returns the final
// answer, or an empty string.
func (a *agent) step() (string, error) {
	a.t.Helper()
	r := a.post(chatBody(a.messages...))
	if r.err != nil || r.status != 200 || !strings.HasSuffix(r.body, "[DONE]\n\n") {
		return "", errLost
	}
	got, _ := readStream(a.t, r.body)
	if len(got.Calls) == 0 {
		return got.Text, nil
	}
	answer := object{"role": "assistant", "content": nil}
	if got.Text != "" {
		answer["content"] = got.Text
	}
	var calls, results []object
	for _, k := range got.Calls {
		calls = append(calls, callOf(k.ID, k.Name, k.Input))
		results = append(results, result(k.ID, "output of "+k.Input))
		a.steps = append(a.steps, k.Input)
	}
	answer["tool_calls"] = calls
	a.messages = append(append(a.messages, answer), results...)
	return "", nil
}

// compact asks for a summary and goes on from it alone.
func (a *agent) compact() string {
	a.t.Helper()
	got, _ := readStream(a.t, a.post(compactionBody("Much work.")).body)
	a.messages = []object{a.messages[0], say("user", "<compacted_context>\n"+got.Text+"\n</compacted_context>\n\n<last_user_message>\n"+a.task+"\n</last_user_message>")}
	return got.Text
}

func marathon(steps, parallel int) *simulator.Marathon {
	return simulator.NewMarathon(simulator.MarathonOptions{
		Steps: steps, Parallel: parallel, Tool: "read", Final: "All read.",
		Input: func(step, call int) string { return fmt.Sprintf(`{"step":%d,"call":%d}`, step, call) },
		Say:   func(step int) string { return fmt.Sprintf("Step %d.", step) },
		Think: func(step int) string { return "What is next?" },
	})
}

// inputs are the inputs of a marathon's calls, in order.
func inputs(steps, parallel int) []string {
	var all []string
	for step := 1; step <= steps; step++ {
		for call := range parallel {
			all = append(all, fmt.Sprintf(`{"step":%d,"call":%d}`, step, call))
		}
	}
	return all
}

func TestAMarathonAsksForEveryStepOnce(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		script := marathon(10, parallel)
		a := newAgent(start(t, simulator.Options{Script: script}), "Read everything.")
		var final string
		for final == "" {
			var err error
			if final, err = a.step(); err != nil {
				t.Fatal(err)
			}
			if done := script.Done(); final == "" && done != len(a.steps)/parallel-1 {
				t.Fatalf("%d steps are done after %d calls", done, len(a.steps))
			}
		}
		if want := inputs(10, parallel); final != "All read." || !slices.Equal(a.steps, want) || script.Done() != 10 {
			t.Errorf("answer %q, %d steps done, calls %v", final, script.Done(), a.steps)
		}
	}
}

func TestAMarathonSurvivesCompactions(t *testing.T) {
	script := marathon(20, 2)
	a := newAgent(start(t, simulator.Options{Script: script}), "Read everything.")
	final, err := "", error(nil)
	for i := 1; final == "" && err == nil; i++ {
		final, err = a.step()
		if i%3 == 0 {
			summary := a.compact()
			if want := fmt.Sprintf("%d of 20 steps are done", len(a.steps)/2); !strings.Contains(summary, want) {
				t.Errorf("the summary does not say %q:\n%s", want, summary)
			}
		}
		if i%6 == 0 {
			a.compact() // Twice in a row.
		}
	}
	if err != nil || final != "All read." || !slices.Equal(a.steps, inputs(20, 2)) {
		t.Errorf("%v, answer %q, calls %v", err, final, a.steps)
	}
}

func TestAMarathonAsksAgainForWhatWasLost(t *testing.T) {
	faults := func(r *simulator.Request) *simulator.Fault {
		if r.Compaction() {
			return nil
		}
		return [...]*simulator.Fault{nil, simulator.Drop(4), simulator.HTTPError(503), simulator.EndEarly(simulator.AfterContent), simulator.StreamOverflow(3)}[r.Number%5]
	}
	script := marathon(8, 1)
	a := newAgent(start(t, simulator.Options{Script: simulator.Inject(script, faults)}), "Read everything.")
	final, lost := "", 0
	for i := 0; final == "" && i < 200; i++ {
		var err error
		if final, err = a.step(); err == nil {
			continue
		}
		if lost++; lost%2 == 0 {
			a.compact() // As forced recovery does, after a lost answer.
		}
	}
	if lost == 0 || final != "All read." || !slices.Equal(a.steps, inputs(8, 1)) {
		t.Errorf("%d answers lost, answer %q, calls %v", lost, final, a.steps)
	}
}

func TestAMarathonDoesNotCountRejectedRequests(t *testing.T) {
	script := marathon(3, 1)
	a := newAgent(start(t, simulator.Options{Script: script}), "Read everything.")
	if _, err := a.step(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.post(with(chatBody(a.messages...), "tools", nil)) // Tool blocks without tools.
	}
	if script.Done() != 0 {
		t.Errorf("%d steps done by rejected requests", script.Done())
	}
	if _, err := a.step(); err != nil || script.Done() != 1 {
		t.Errorf("%v, %d steps done", err, script.Done())
	}
}

func TestAMarathonDoesNotTakeOtherResultsForItsOwn(t *testing.T) {
	script := marathon(3, 1)
	c := start(t, simulator.Options{Script: script})
	c.post(chatBody(hello))
	c.post(chatBody(hello))                                                                        // Sent again.
	c.post(chatBody(hello, asks("other"), result("other", "a")))                                   // Another call.
	c.post(chatBody(hello, asks("call_3_1", "x"), result("call_3_1", "a"), result("x", "a")))      // One too many.
	c.post(chatBody(hello, asks("call_4_1"), result("call_4_1", "a"), say("user", "Never mind."))) // Not what is new.
	if script.Done() != 0 {
		t.Errorf("%d steps done", script.Done())
	}
	c.post(chatBody(hello, asks("call_5_1"), result("call_5_1", "a")))
	if script.Done() != 1 {
		t.Errorf("%d steps done, want 1", script.Done())
	}
}

func TestAMarathonNeedsItsTool(t *testing.T) {
	c := start(t, simulator.Options{Script: marathon(3, 1)})
	got, _ := readStream(t, c.post(with(chatBody(hello), "tools", []object{toolDefinition("list")})).body)
	if len(got.Calls) != 0 || !strings.Contains(got.Text, "read") {
		t.Errorf("answer %+v", got)
	}
}

func TestSummariesOfAMarathonKeepTheirSize(t *testing.T) {
	script := simulator.NewMarathon(simulator.MarathonOptions{Steps: 1000, Tool: "read", Final: "Done.", SummaryTokens: 200})
	c := start(t, simulator.Options{Script: script})
	for i := range 60 {
		c.post(chatBody(hello, asks(fmt.Sprintf("call_%d_1", i)), result(fmt.Sprintf("call_%d_1", i), "a")))
	}
	got, _ := readStream(t, c.post(compactionBody("Much work.")).body)
	if n := simulator.CountTokens(got.Text); n > 200 || n < 150 {
		t.Errorf("%d tokens:\n%s", n, got.Text)
	}
	if !strings.Contains(got.Text, "60 of 1000 steps are done") || !strings.Contains(got.Text, "Call read for step 61.") {
		t.Errorf("summary:\n%s", got.Text)
	}
}
