package llm

import (
	_ "embed" // for the prompts
	"fmt"
	"strings"
	"time"

	"keen/internal/llm/compaction"
)

var (
	//go:embed prompts/system.md
	systemPrompt string
	//go:embed prompts/compaction.md
	compactionPrompt string
	//go:embed prompts/compaction_auto.md
	compactionPromptAuto string
	//go:embed prompts/compaction_manual.md
	compactionPromptManual string
)

// maxInstructionBytes bounds the project instructions in a system prompt, all
// files together.
const maxInstructionBytes = 32 << 10

// SystemPromptOptions is what the agent is told about where it works.
type SystemPromptOptions struct {
	// WorkingDirectory is the absolute path the agent works in.
	WorkingDirectory string
	// Platform names the operating system, such as "linux".
	Platform string
	// Date is today. Only the day is used, so that the prompts of a day are
	// equal and stay in the provider's cache. The zero time leaves it out.
	Date time.Time
	// GitBranch is the branch that is checked out, or empty when the
	// working directory is in no repository.
	GitBranch string
	// Instructions are the project's own instructions, the most general
	// first. Together they may have 32 KiB; what is beyond is cut, with a
	// note.
	Instructions []ProjectInstructions
	// Headless says that nobody watches and nobody can answer.
	Headless bool
}

// ProjectInstructions is one file of instructions, such as AGENTS.md.
type ProjectInstructions struct {
	// Path says where the text comes from.
	Path string
	// Text is the content of the file.
	Text string
}

// BuildSystemPrompt returns the system prompt of the agent. Equal options give
// equal prompts.
func BuildSystemPrompt(o SystemPromptOptions) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(systemPrompt))
	b.WriteString("\n\n# Environment\n\n")
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", name, value)
		}
	}
	fact("Working directory", o.WorkingDirectory)
	fact("Platform", o.Platform)
	if !o.Date.IsZero() {
		fact("Date", o.Date.Format(time.DateOnly))
	}
	if o.GitBranch == "" {
		fact("Git", "not a repository")
	} else {
		fact("Git branch at the start", o.GitBranch)
	}
	if o.Headless {
		b.WriteString("- Headless: nobody watches and nobody can answer. Do not ask; choose sensibly, say what you chose, and finish. A call without permission is denied; do without it. Your last message is the result.\n")
	}
	writeInstructions(&b, o.Instructions)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeInstructions(b *strings.Builder, files []ProjectInstructions) {
	room := maxInstructionBytes
	for _, f := range files {
		text := strings.TrimSpace(f.Text)
		if text == "" {
			continue
		}
		fmt.Fprintf(b, "\n# Project instructions from %s\n\n", f.Path)
		kept := text
		if len(text) > room {
			kept = strings.ToValidUTF8(text[:room], "")
		}
		room -= len(kept)
		b.WriteString(kept + "\n")
		if left := len(text) - len(kept); left > 0 {
			fmt.Fprintf(b, "[... %d bytes left out; read %s if you need them ...]\n", left, f.Path)
		}
	}
}

// BuildCompactionPrompt returns the system prompt of a compaction request.
// hint is what the user wants the summary to focus on; it may be empty and is
// only looked at in a manual compaction.
func BuildCompactionPrompt(mode compaction.Mode, hint string) string {
	prompt := strings.TrimSpace(compactionPrompt) + "\n\n"
	if mode == compaction.ModeAutomatic {
		return prompt + strings.TrimSpace(compactionPromptAuto)
	}
	prompt += strings.TrimSpace(compactionPromptManual)
	if hint = strings.TrimSpace(hint); hint != "" {
		prompt += "\n\nThe user asks you to focus on this, without losing what the sections above demand:\n" + hint
	}
	return prompt
}

// BuildAutoCompactionPrompt returns the system prompt of an automatic
// compaction request.
func BuildAutoCompactionPrompt() string {
	return BuildCompactionPrompt(compaction.ModeAutomatic, "")
}
