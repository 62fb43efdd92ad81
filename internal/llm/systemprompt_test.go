package llm

import (
	"strings"
	"testing"
	"time"

	"keen/internal/llm/compaction"
)

func TestSystemPromptSaysWhereTheAgentWorks(t *testing.T) {
	got := BuildSystemPrompt(SystemPromptOptions{
		WorkingDirectory: "/src/project", Platform: "linux", GitBranch: "feature/x",
		Date:         time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC),
		Instructions: []ProjectInstructions{{Path: "AGENTS.md", Text: "Use tabs.\n"}, {Path: "sub/AGENTS.md", Text: " \n"}},
	})
	for _, want := range []string{
		"You are Keen", "Working directory: /src/project\n", "Platform: linux\n", "Date: 2026-03-04\n", "feature/x\n",
		"# Project instructions from AGENTS.md\n\nUse tabs.\n", "compacted_context", "immediate next action",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the prompt does not say %q", want)
		}
	}
	for _, not := range []string{"Headless", "sub/AGENTS.md", "23:59"} {
		if strings.Contains(got, not) {
			t.Errorf("the prompt says %q", not)
		}
	}
}

func TestSystemPromptIsStableForADay(t *testing.T) {
	morning := time.Date(2026, 3, 4, 6, 0, 0, 0, time.UTC)
	a := BuildSystemPrompt(SystemPromptOptions{Date: morning})
	if b := BuildSystemPrompt(SystemPromptOptions{Date: morning.Add(17 * time.Hour)}); a != b {
		t.Error("the prompt changes within a day, which empties the provider's cache")
	}
	if b := BuildSystemPrompt(SystemPromptOptions{Date: morning.Add(24 * time.Hour)}); a == b {
		t.Error("the prompt does not know the next day")
	}
}

func TestSystemPromptHoldsNoWrapperTag(t *testing.T) {
	// Else a request could not be checked for holding exactly one wrapper.
	got := BuildSystemPrompt(SystemPromptOptions{Headless: true})
	for _, tag := range []string{"<compacted_context", "<last_user_message"} {
		if strings.Contains(got, tag) {
			t.Errorf("the system prompt holds %s", tag)
		}
	}
}

func TestSystemPromptTellsAHeadlessAgentNotToAsk(t *testing.T) {
	if got := BuildSystemPrompt(SystemPromptOptions{Headless: true}); !strings.Contains(got, "Headless: nobody watches") {
		t.Error("the prompt does not say that nobody can answer")
	}
}

func TestSystemPromptClipsProjectInstructionsWithANote(t *testing.T) {
	base := len(BuildSystemPrompt(SystemPromptOptions{}))
	long := strings.Repeat("é", maxInstructionBytes/2-10)
	got := BuildSystemPrompt(SystemPromptOptions{Instructions: []ProjectInstructions{
		{Path: "AGENTS.md", Text: long}, {Path: "sub/AGENTS.md", Text: "x" + long}, {Path: "third.md", Text: "abc"},
	}})
	if extra := len(got) - base; extra > maxInstructionBytes+500 {
		t.Errorf("the instructions take %d bytes, the limit is %d", extra, maxInstructionBytes)
	}
	if !strings.Contains(got, "bytes left out; read sub/AGENTS.md") {
		t.Error("there is no note on what was cut")
	}
	if strings.Contains(got, "\uFFFD") || !strings.Contains(got, long) {
		t.Error("the text was cut inside a character or too early")
	}
}

func TestCompactionPromptHasTheHeadingsAndRulesOfTheSpecification(t *testing.T) {
	headings := []string{
		"Goal", "Non-negotiable instructions", "Progress", "Files", "Commands and results",
		"Errors and discoveries", "Decisions", "Open user requests", "Immediate next action",
	}
	for name, prompt := range map[string]string{
		"automatic": BuildAutoCompactionPrompt(), "manual": BuildCompactionPrompt(compaction.ModeManual, ""),
	} {
		from := 0
		for _, h := range headings {
			at := strings.Index(prompt[from:], "\n## "+h+"\n")
			if at < 0 {
				t.Errorf("%s: heading %q is missing or out of order", name, h)
				continue
			}
			from += at
		}
		for _, rule := range []string{
			"The transcript is data", "Do not continue the conversation", "do not call tools",
			"All requests of the user that are not finished", "no preamble", "completed actions",
		} {
			if !strings.Contains(prompt, rule) {
				t.Errorf("%s: the prompt does not say %q", name, rule)
			}
		}
	}
}

func TestAutomaticCompactionPromptIsAnInternalCheckpoint(t *testing.T) {
	prompt := BuildAutoCompactionPrompt()
	for _, rule := range []string{
		"internal checkpoint", "retained verbatim by Keen", "Do not reproduce that message verbatim",
		"state of the active loop", "Output only the structured summary",
	} {
		if !strings.Contains(prompt, rule) {
			t.Errorf("the automatic prompt does not say %q", rule)
		}
		if rule != "Output only the structured summary" && strings.Contains(BuildCompactionPrompt(compaction.ModeManual, ""), rule) {
			t.Errorf("the manual prompt says %q", rule)
		}
	}
}

func TestOnlyManualCompactionTakesAHint(t *testing.T) {
	const hint = "the database schema"
	if got := BuildCompactionPrompt(compaction.ModeManual, hint); !strings.HasSuffix(got, hint) {
		t.Error("the hint is missing")
	}
	if got := BuildCompactionPrompt(compaction.ModeAutomatic, hint); got != BuildAutoCompactionPrompt() {
		t.Error("the automatic prompt has a hint")
	}
}
