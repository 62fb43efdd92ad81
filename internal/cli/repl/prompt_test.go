package repl

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/session"
)

// preparing prepares prompts as the test says.
func preparing(prepare Prepare) func(o *Options) {
	return func(o *Options) {
		o.Prepare = prepare
		o.PromptCommands = func() []CommandInfo {
			return []CommandInfo{{Name: "/review", Args: "[focus]", Help: "review the change"}}
		}
	}
}

func expand(_ context.Context, typed string) (Prompt, error) {
	focus, ok := strings.CutPrefix(typed, "/review ")
	switch {
	case !ok:
		return Prompt{Text: typed}, nil
	case focus == "nothing":
		return Prompt{}, errors.New("there is nothing to review")
	}
	return Prompt{
		Text: "Review it: " + focus, Notes: []string{"the skill was cut"},
		Attachments: []llm.Attachment{{Name: "skill:review", Text: "body"}},
	}, nil
}

func TestWhatIsTypedIsPreparedAndStoredWithWhatWasTyped(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/review errors")
		p.sees("/review errors")
		p.sees("the skill was cut")
		p.does(step(1), done())
		want := session.Event{
			Kind: session.KindUserMessage, Text: "Review it: errors", Shown: "/review errors",
			Attachments: []llm.Attachment{{Name: "skill:review", Text: "body"}},
		}
		for _, e := range p.stored() {
			if e.Kind == session.KindUserMessage {
				e.Time = want.Time
				if diff := cmp.Diff(want, e); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			}
		}
		request := p.client.all()[0].request
		if m := request[len(request)-1]; m.Content != want.Text || len(m.Attachments) != 1 {
			t.Errorf("sent %+v", m)
		}
		p.idle()
	}, preparing(expand))
}

func TestAPromptCommandWaitsInTheQueue(t *testing.T) {
	play(t, func(p *program) {
		p.enter("do it")
		p.enter("/review errors")
		p.sees("Queue · 1 waiting")
		p.does(step(1), done())
		if diff := cmp.Diff([]string{"do it", "Review it: errors"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
		p.does(done())
	}, preparing(expand))
}

func TestAPromptThatCannotBePreparedComesBack(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/review nothing")
		p.sees("there is nothing to review")
		if got := p.m.editor.Value(); got != "/review nothing" {
			t.Errorf("the editor holds %q", got)
		}
		if len(p.client.all()) != 0 || len(p.m.state.Messages()) != 0 {
			t.Error("something was sent or remembered")
		}
		p.idle()
	}, preparing(expand))
}

func TestEscStopsThePreparation(t *testing.T) {
	stuck := func(ctx context.Context, _ string) (Prompt, error) {
		<-ctx.Done()
		return Prompt{}, ctx.Err()
	}
	play(t, func(p *program) {
		p.enter("do it")
		p.sees("Working")
		p.key("esc")
		if got := p.m.editor.Value(); got != "do it" {
			t.Errorf("the editor holds %q", got)
		}
		if len(p.client.all()) != 0 || len(p.m.state.Messages()) != 0 {
			t.Error("something was sent or remembered")
		}
		p.idle()
	}, preparing(stuck))
}

func TestCommandsOfRoomsAreListedCompletedAndRun(t *testing.T) {
	runs := 0
	play(t, func(p *program) {
		p.enter("/help")
		p.sees("/servers [name]")
		p.sees("/review [focus]")
		p.seesNot("taken")
		p.enter("/servers all")
		p.sees("state of all")
		p.sees("files")
		p.enter("/servers broken")
		p.sees("no such server")
		p.enter("do it")
		p.enter("/servers all")
		p.enter("/later")
		p.sees("/later has to wait")
		p.m.editor.Reset()
		p.does(done())
		p.enter("/servers go")
		if got := p.prompts(); len(got) != 2 || got[1] != "sent by the command" {
			t.Errorf("prompts = %q", got)
		}
		p.does(done())
		if runs != 4 {
			t.Errorf("the command ran %d times", runs)
		}
	}, preparing(expand), func(o *Options) {
		o.Commands = []Command{
			{CommandInfo: CommandInfo{Name: "/servers", Args: "[name]", Help: "show the servers"}, WhileBusy: true, Run: func(_ context.Context, arg string) CommandResult {
				runs++
				switch arg {
				case "broken":
					return CommandResult{Err: errors.New("no such server")}
				case "go":
					return CommandResult{Send: "sent by the command"}
				}
				return CommandResult{Text: "state of " + arg, Title: "Servers", Entries: []render.HelpEntry{{Name: "files", Text: "running"}}}
			}},
			{CommandInfo: CommandInfo{Name: "/later", Help: "waits"}, Run: func(context.Context, string) CommandResult { return CommandResult{} }},
			{CommandInfo: CommandInfo{Name: "/exit", Help: "taken"}},
		}
	})
}

func TestHeadlessPromptsArePreparedToo(t *testing.T) {
	log, warnings := &memoryLog{}, new(bytes.Buffer)
	run, _ := headless(&scriptedClient{events: compactedTurn()}, log, FormatText)
	run.Prepare, run.Warnings = expand, warnings
	if _, err := run.Run(t.Context(), "/review errors"); err != nil {
		t.Fatal(err)
	}
	if e := log.events()[0]; e.Text != "Review it: errors" || e.Shown != "/review errors" || len(e.Attachments) != 1 {
		t.Errorf("stored %+v", e)
	}
	if got := warnings.String(); got != "keen: the skill was cut\n" {
		t.Errorf("warnings = %q", got)
	}
	before := len(log.events())
	if _, err := run.Run(t.Context(), "/review nothing"); err == nil || len(log.events()) != before {
		t.Errorf("error = %v with %d events stored, want an error and %d", err, len(log.events()), before)
	}
}
