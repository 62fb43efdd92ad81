package render_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

type view = func(text string, width int) []string

// views draws a text in every place where there may be one.
func views(t *render.Theme) map[string]view {
	one := func(line string) []string { return []string{line} }
	code := 3
	return map[string]view{
		"user":      func(s string, w int) []string { return render.UserMessage(t, s, w) },
		"markdown":  func(s string, w int) []string { return render.NewMarkdown(t, w).Render(s) },
		"reasoning": func(s string, w int) []string { return render.Reasoning(t, s, render.ReasoningShown, w) },
		"collapsed": func(s string, w int) []string { return render.Reasoning(t, s, render.ReasoningCollapsed, w) },
		"notice":    func(s string, w int) []string { return render.Notice(t, s, w) },
		"error": func(s string, w int) []string {
			return render.ErrorBlock(t, render.Failure{What: s, Detail: s, Do: []string{s, s}}, w)
		},
		"tool line": func(s string, w int) []string {
			return one(render.ToolLine(t, render.Tool{Label: s, Status: tools.StatusSuccess, Summary: s, Duration: time.Minute}, w))
		},
		"tool output": func(s string, w int) []string {
			return render.ToolBlock(t, render.Tool{Label: s, Output: s, Frame: "⠋"}, w)
		},
		"tool diff": func(s string, w int) []string {
			return render.ToolBlock(t, render.Tool{Label: s, Status: tools.StatusSuccess, Diff: "@@ -1 +1 @@\n-" + s + "\n+" + s}, w)
		},
		"diff": func(s string, w int) []string { return render.Diff(t, s, 3, w) },
		"bash": func(s string, w int) []string {
			return render.BashBlock(t, render.Bash{Command: s, Output: s + "\n" + s, ExitCode: &code, MaxLines: 4}, w)
		},
		"bash running": func(s string, w int) []string {
			return render.BashBlock(t, render.Bash{Command: s, Output: s + "\n" + s, Running: true, MaxLines: 1}, w)
		},
		"permission": func(s string, w int) []string {
			return permissionCard(t, render.Permission{Tool: s, Action: s, Command: s, Paths: []string{s}, Reason: s, Pattern: s, Diff: s, Message: s, Choice: render.Deny, Waiting: 2}, w)
		},
		"context": func(s string, w int) []string {
			return render.ContextBar(t, render.ContextUse{System: len(s), Tools: 5, User: 7000, Budget: 9000, Window: 10000, Threshold: 8000}, w)
		},
		"status": func(s string, w int) []string {
			return render.StatusLines(t, render.Status{Model: s, Dir: s, Branch: s, Mode: s, Thinking: s}, w)
		},
		"loader": func(s string, w int) []string {
			return one(render.LoaderLine(t, render.Loader{Frame: "⠋", Text: s, Hint: s, Notification: s}, w))
		},
		"notification": func(s string, w int) []string { return one(render.Notification(t, s, w)) },
		"queue":        func(s string, w int) []string { return render.QueueBand(t, []string{s, s + "\n" + s}, 1, w) },
		"table": func(s string, w int) []string {
			return render.Table(t, render.TableData{Headers: []string{"a", s}, Rows: [][]string{{s, s}, {s}}, Right: []int{1}}, w)
		},
		"help": func(s string, w int) []string {
			return render.HelpTable(t, []render.HelpSection{{Title: s, Entries: []render.HelpEntry{{Name: s, Text: s}}}}, w)
		},
		"welcome": func(s string, w int) []string {
			return render.WelcomeScreen(t, render.Welcome{Version: s, Dir: s, Model: s, Last: s, Notices: []string{s}, Tips: []string{s}}, w)
		},
		"rule": func(s string, w int) []string { return one(render.Rule(t, s, w)) },
		"replay": func(s string, w int) []string {
			return render.ReplayItem(render.NewMarkdown(t, w), session.ReplayItem{Kind: session.ReplayTool, Tool: &llm.HistoricalToolActivity{Tool: "bash", Input: []byte(fmt.Sprintf("{%q: %q}", "command", s)), Summary: s}})
		},
	}
}

// randomText mixes what makes widths hard to count.
func randomText(r *rand.Rand) string {
	pieces := []string{
		"a", "word", " ", "  ", "\n", "\t", "日本語", "👩‍👩‍👧", "🇩🇪", "e\u0301", "ש", "\u200d", "\x1b[31m", "\x1b]8;;x\a", "**", "`", "```\n", "- ", "1. ", "> ", "# ",
		"|", "\n|--|--|\n", "| x | y |\n", "https://example.com/a/long/path", "veryveryveryverylongwordwithoutanyspace", "<T>", "&amp;", "\r", "[x](y)", "\u0000", "ﷺ", "⠋", "\xff",
	}
	var b strings.Builder
	for range 1 + r.IntN(40) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestNoLineIsWiderThanAsked(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, theme := range []*render.Theme{render.Dark(), render.Dumb()} {
		all := views(theme)
		for width := 1; width <= 120; width += 1 + width/20 {
			for range 4 {
				text := randomText(r)
				for name, draw := range all {
					for _, line := range draw(text, width) {
						if got := render.Width(line); got > width {
							t.Fatalf("%s, %s: %q has %d cells at width %d; text %q", theme.Name, name, line, got, width, text)
						}
						if strings.Contains(line, "\n") {
							t.Fatalf("%s, %s: %q is more than one line; text %q", theme.Name, name, line, text)
						}
					}
				}
			}
		}
	}
}

func TestDumbTerminalsGetNoEscapeSequences(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for name, draw := range views(render.Dumb()) {
		if name == "loader" || name == "tool output" {
			continue // The frame comes from the caller here.
		}
		for range 20 {
			text := randomText(r)
			for _, line := range draw(text, 60) {
				if strings.ContainsAny(line, "\x1b\t\r") {
					t.Fatalf("%s draws %q for %q", name, line, text)
				}
			}
		}
	}
}

func TestEachLineClosesItsStyles(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for name, draw := range views(render.Dark()) {
		for range 20 {
			text := randomText(r)
			for _, line := range draw(text, 40) {
				last := strings.LastIndex(line, "\x1b[")
				if last >= 0 && !strings.HasPrefix(line[last:], "\x1b[m") && !strings.HasPrefix(line[last:], "\x1b[0m") {
					t.Fatalf("%s leaves a style open in %q for %q", name, line, text)
				}
			}
		}
	}
}
