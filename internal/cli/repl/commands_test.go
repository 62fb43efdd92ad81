package repl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/session"
)

func TestEveryCommandIsInTheHelp(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/help")
		for _, name := range []string{
			"/help", "/model", "/thinking", "/show-thinking", "/compact", "/context", "/usage", "/clear", "/new", "/sessions",
			"/resume", "/permissions", "/queue", "/copy", "/export", "/init", "/login", "/logout", "/exit",
		} {
			p.sees(name)
		}
	})
}

func TestAnUnknownCommandStaysInTheEditor(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/nonsense x")
		p.sees("There is no command /nonsense")
		if got := p.m.editor.Value(); got != "/nonsense x" {
			t.Errorf("the editor holds %q", got)
		}
	})
}

func TestAPathIsNoCommand(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/etc/hosts is wrong")
		if diff := cmp.Diff([]string{"/etc/hosts is wrong"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
	})
}

func TestACommandIsCompleted(t *testing.T) {
	play(t, func(p *program) {
		p.key("/", "e", "x", "i")
		p.sees("leave")
		p.key("enter")
		if !p.quit {
			t.Error("the completed command did not run")
		}
	})
}

func TestAFileIsCompleted(t *testing.T) {
	play(t, func(p *program) {
		for _, r := range "see @repl" {
			p.key(string(r))
		}
		p.sees("internal/repl.go")
		p.seesNot("main.go")
		p.key("tab")
		if got := p.m.editor.Value(); got != "see @internal/repl.go " {
			t.Errorf("the editor holds %q", got)
		}
	}, func(o *Options) {
		o.Files = func(context.Context) ([]string, error) { return []string{"main.go", "internal/repl.go"}, nil }
	})
}

func TestProjectFilesOfADirectoryWithoutARepository(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.go", "sub/b.go", ".git/config", "node_modules/x.js"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := walkFiles(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.go", "sub/b.go"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func models(o *Options) {
	o.Models = func(context.Context) ([]ModelInfo, error) {
		return []ModelInfo{{Name: "acme/one", Detail: "128k", Efforts: []string{"low", "high"}}, {Name: "acme/two", Detail: "1M"}}, nil
	}
}

func TestTheModelIsChosenAndStored(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/model")
		p.sees("acme/two")
		p.key("down", "enter")
		p.sees("Now using acme/two")
		if got := p.config.choice; got != (ModelChoice{Name: "acme/two"}) {
			t.Errorf("the configuration says %+v", got)
		}
		p.enter("/model acme/one")
		p.sees("Now using acme/one")
		p.enter("/thinking high")
		p.sees("thinking high")
		p.enter("/thinking absurd")
		p.sees("The efforts of this model: low, high")
		if got := p.config.choice; got != (ModelChoice{Name: "acme/one", Effort: "high"}) {
			t.Errorf("the configuration says %+v", got)
		}
	}, models)
}

func TestAModelThatCannotBeUsedLeavesTheOldOne(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/model acme/two")
		p.sees("no key for acme/two")
		p.idle()
		if p.m.choice.Name != "acme/one" || p.config.choice.Name != "acme/one" {
			t.Errorf("the model is %+v", p.m.choice)
		}
	}, models, func(o *Options) {
		open := o.NewClient
		o.NewClient = func(ctx context.Context, c ModelChoice) (Client, error) {
			if c.Name == "acme/two" {
				return nil, errors.New("no key for acme/two")
			}
			return open(ctx, c)
		}
	})
}

func TestThinkingIsShownOrHidden(t *testing.T) {
	for view, visible := range map[render.ReasoningView]bool{render.ReasoningShown: true, render.ReasoningHidden: false} {
		play(t, func(p *program) {
			p.config.reasoning = view
			p.m.reasoning = view
			p.enter("do it")
			p.does(step(1), llm.StreamEvent{Type: llm.StreamEventTypeReasoningChunk, Text: "hmm, let me see"}, chunk("Answer."), done())
			if got := strings.Contains(p.everything(), "hmm, let me see"); got != visible {
				t.Errorf("view %d: the reasoning is visible: %v", view, got)
			}
		})
	}
	play(t, func(p *program) {
		p.enter("/show-thinking off")
		p.sees("Thinking is hidden")
		if p.config.reasoning != render.ReasoningHidden {
			t.Error("it was not stored")
		}
	})
}

func TestFirstRunLeadsToSetupAndNeverToAnError(t *testing.T) {
	play(t, func(p *program) {
		p.sees("Where should the model come from?")
		p.sees("ACME_API_KEY is set")
		p.key("esc")
		p.sees("No model is set up yet")
		p.enter("hello")
		p.sees("Where should the model come from?")
		if got := p.m.editor.Value(); got != "hello" {
			t.Errorf("the prompt is gone: %q", got)
		}
		p.key("down", "enter")
		p.sees("Now using acme/two")
		p.seesNot("✗")
		p.key("enter")
		if diff := cmp.Diff([]string{"hello"}, p.prompts()); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
		if p.config.choice.Name != "acme/two" {
			t.Errorf("the configuration says %+v", p.config.choice)
		}
	}, func(o *Options) {
		o.Config.(*memoryConfig).choice = ModelChoice{}
		choice := func(name string) func(context.Context, func(string)) (ModelChoice, error) {
			return func(context.Context, func(string)) (ModelChoice, error) { return ModelChoice{Name: name}, nil }
		}
		o.Setup = func(context.Context) []SetupChoice {
			return []SetupChoice{{Title: "ACME_API_KEY is set", Detail: "use acme", Apply: choice("acme/one")}, {Title: "A local server", Apply: choice("acme/two")}}
		}
	})
}

func TestSigningInShowsWhatToDoAndCanBeStopped(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/login acme")
		p.pass(100 * time.Millisecond)
		p.sees("Open https://acme.example/device")
		p.key("esc")
		p.sees("Sign in: stopped")
		p.idle()
		p.enter("/logout")
		p.sees("Sign out: done")
	}, func(o *Options) {
		o.Login = func(ctx context.Context, _ string, show func(string)) error {
			show("Open https://acme.example/device\n")
			<-ctx.Done()
			return ctx.Err()
		}
		o.Logout = func(context.Context, string, func(string)) error { return nil }
	})
}

func TestAShellCommandIsShownAndStoredBesideTheConversation(t *testing.T) {
	// The clock of a bubble does not wait for processes.
	result := shell(t.Context(), "printf one; printf two >&2; exit 3", t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}, func(string) {})
	if result.err != nil || result.exitCode == nil || *result.exitCode != 3 {
		t.Errorf("the result is %+v", result)
	}
	play(t, func(p *program) {
		code := 3
		p.run(p.m.startJob(&job{title: "make", shell: true}, func(_ context.Context, say func(string)) jobResult {
			say("line one\n")
			say("line two\n")
			return jobResult{exitCode: &code}
		}))
		p.settle()
		p.pass(100 * time.Millisecond)
		p.sees("line two")
		p.sees("exit 3")
		events := p.stored()
		if last := events[len(events)-1]; last.Kind != session.KindCommand || last.Output != "line one\nline two\n" || *last.ExitCode != 3 {
			t.Errorf("it is stored as %+v", last)
		}
		if len(p.m.state.Messages()) != 0 {
			t.Error("the model sees it")
		}
	})
}

func TestCancellingAShellCommandEndsWhatItStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	result := shell(ctx, "echo started; sleep 60 & sleep 60", t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}, func(string) { cancel() })
	if !errors.Is(result.err, context.Canceled) {
		t.Errorf("the result is %+v", result)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestUsageAndCost(t *testing.T) {
	play(t, func(p *program) {
		p.enter("/usage")
		p.sees("No provider has reported any usage")
		p.working()
		p.does(done())
		p.enter("/usage")
		p.sees("acme/one")
		p.sees("$0.52")
	}, func(o *Options) {
		o.Cost = func(_ string, u llm.Usage) (float64, bool) { return float64(u.InputTokens+u.OutputTokens) / 1000, true }
	})
}

// memoryHistory is a history in memory.
type memoryHistory struct{ prompts []string }

func (h *memoryHistory) Load() ([]string, error) { return append([]string(nil), h.prompts...), nil }

func (h *memoryHistory) Add(prompt string) error {
	h.prompts = append(h.prompts, prompt)
	return nil
}

func TestTheHistoryIsReadAndWritten(t *testing.T) {
	h := &memoryHistory{prompts: []string{"of yesterday"}}
	play(t, func(p *program) {
		p.key("up")
		if got := p.m.editor.Value(); got != "of yesterday" {
			t.Errorf("the editor holds %q", got)
		}
		p.key("ctrl+u")
		p.enter("of today")
		if diff := cmp.Diff([]string{"of yesterday", "of today"}, h.prompts); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	}, func(o *Options) { o.History = h })
}

func TestTheExternalEditorEditsThePrompt(t *testing.T) {
	run := &editorRun{command: `sh -c "printf ' and more' >> \"\$0\""`, environ: []string{"PATH=" + os.Getenv("PATH")}, text: "a prompt"}
	if err := run.Run(); err != nil {
		t.Fatal(err)
	}
	if run.text != "a prompt and more" {
		t.Errorf("the text is %q", run.text)
	}
	play(t, func(p *program) {
		p.key("ctrl+g")
		p.sees("Set $EDITOR")
		p.send(editedMsg{text: "from the editor\n"})
		if got := p.m.editor.Value(); got != "from the editor" {
			t.Errorf("the editor holds %q", got)
		}
		p.send(editedMsg{err: errors.New("exit status 1")})
		p.sees("The editor failed: exit status 1")
		if got := p.m.editor.Value(); got != "from the editor" {
			t.Errorf("the text is gone: %q", got)
		}
	})
}

func TestAnImageIsRefusedWithAReason(t *testing.T) {
	play(t, func(p *program) {
		p.send(tea.PasteMsg{Content: "/tmp/shot.png"})
		p.sees("Images cannot be sent")
	})
}

func TestDumbTerminalsAreToldWhatToDo(t *testing.T) {
	err := Run(t.Context(), Options{Environ: []string{"TERM=dumb"}}, nil, nil)
	if !errors.Is(err, ErrDumbTerminal) || !strings.Contains(err.Error(), "keen run") {
		t.Errorf("the error is %v", err)
	}
}
