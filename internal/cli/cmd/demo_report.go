package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"keen/internal/simulator"
)

// demoCredential is what the demo's client identifies itself with.
type demoCredential struct{}

// Token implements llm.Credential.
func (demoCredential) Token(context.Context, string) (string, error) { return demoKey, nil }

// AccountID implements llm.AccountCredential.
func (demoCredential) AccountID(context.Context) (string, error) { return "demo-account", nil }

// Retrieve implements aws.CredentialsProvider.
func (demoCredential) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: demoKey, SecretAccessKey: "demo-secret"}, nil
}

// report prints what the run achieved, and fails where it broke a promise.
func (d *demo) report() error {
	records := d.records
	input, output := records.Tokens()
	answer := d.turn.Answer()
	if i := strings.LastIndex(answer, "\n\n"); i >= 0 {
		answer = answer[i+2:]
	}
	d.say("\n%s\n", answer)
	kept, wrapped := demoPromises(records, d.job.task)
	largest := records.LargestInput()
	row := func(name, format string, args ...any) { d.say("  %-12s %s", name, fmt.Sprintf(format, args...)) }
	right := strings.HasSuffix(answer, d.job.answer)
	if right {
		row("Answer", "right: checked against the files themselves")
	} else {
		row("Answer", "WRONG: the files say: %s", d.job.answer)
	}
	row("Steps", "%d in %v, %d compactions inside the one turn", len(records.Parents()), d.took.Round(10*time.Millisecond), d.turn.Compactions())
	row("Tool output", "%d tokens, %.1f times the window", d.tokens, float64(d.tokens)/float64(d.f.window))
	row("Tokens", "%d sent in %d requests, %d received", input, len(records), output)
	row("Largest", "request %d tokens + %d reserved for the answer, of %d; %d requests over the window", largest, d.client.Sizes().Output, d.f.window, len(records.OverWindow()))
	row("Task", "verbatim in %d of %d requests; one wrapper in %s", kept, len(records), wrapped)
	row("Model", "scripted: it shows that the agent works, not how clever a model is")
	broken := func(what string) error { return failed(errors.New("the demo broke its promise: " + what)) }
	switch {
	case !right:
		return broken("the answer is wrong")
	case len(records.OverWindow()) > 0:
		return broken("a request was over the window")
	case kept != len(records):
		return broken("the task was lost")
	case d.tokens < demoVolume*d.f.window:
		return broken("the tool output was too small to show anything")
	case d.turn.Compactions() == 0:
		return broken("nothing was compacted")
	}
	return nil
}

// demoPromises counts the requests that hold the task, and says whether each
// after the first compaction has exactly one wrapper.
func demoPromises(records simulator.Records, task string) (kept int, wrapped string) {
	compacted, after, good := false, 0, 0
	for _, r := range records {
		if r.Request.Contains(task) {
			kept++
		}
		switch {
		case r.Request.Compaction():
			compacted = true
		case compacted:
			after++
			if r.Request.Wrappers() == 1 {
				good++
			}
		}
	}
	if after == good {
		return kept, fmt.Sprintf("each of the %d after the first compaction", after)
	}
	return kept, fmt.Sprintf("only %d of the %d after the first compaction", good, after)
}
