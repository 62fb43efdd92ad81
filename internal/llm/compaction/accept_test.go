package compaction

import (
	"errors"
	"strings"
	"testing"
)

// goodSummary is a summary that passes the checks.
const goodSummary = `## Goal
Finish the job the user described and report the final result.
## Progress
Steps so far were done as asked; the remaining files have to be read next.
## Immediate next action
Read the next file and go on from there.`

func TestB56_TemplatesWithoutContentAreNoSummary(t *testing.T) {
	var template strings.Builder
	for line := range strings.Lines(testPrompt("")) {
		if strings.HasPrefix(line, "## ") {
			template.WriteString(line)
		}
	}
	headings := template.String()
	under := func(filler string) string { return strings.ReplaceAll(headings, "\n", "\n"+filler+"\n") }
	for name, summary := range map[string]string{
		"empty": "", "blank": " \n\t\n", "headings alone": headings,
		"none": under("(none)"), "bullets of none": under("- (none)"), "n/a": under("n/a"), "N/A.": under("* N/A."),
		"dashes": under("-"), "long dashes": under("—"), "none yet": under("None yet."), "empty bullets": under("- \n- \n1."),
		"labels":         under("- Done: (none)\n- **In progress:** none\n- Remaining: n/a"),
		"labels in line": under("Done: (none). In progress: (none). Remaining: nothing."),
		"bold headings":  strings.ReplaceAll(strings.ReplaceAll(under("none"), "## ", "**"), "s\n", "s**\n"),
		"plain headings": strings.ReplaceAll(under("(none)"), "## ", ""),
		"colon headings": strings.ReplaceAll(strings.ReplaceAll(headings, "## ", ""), "\n", ": (none)\n"),
		"a refusal":      "I can't help with that.",
	} {
		var unusable *UnusableError
		if err := Check(summary, Criteria{Prompt: testPrompt(""), Replaced: 30000, Replacement: 100}); !errors.As(err, &unusable) || unusable.Reason == "" {
			t.Errorf("%s: got %v for\n%s", name, err, summary)
		}
	}
}

func TestSummariesWithContentAreAccepted(t *testing.T) {
	for name, summary := range map[string]string{
		"usual":        goodSummary,
		"one sentence": "The user wants the parser fixed; the test in parse_test.go still fails.",
		"one section":  "## Goal\n(none)\n## Progress\n- Done: removed the cache from store.go and its tests.",
		"Chinese":      "## Goal\n用户要求修复解析器中的错误,并且保持现有接口不变。目前已经修改了词法分析部分,测试仍然失败,下一步检查边界条件。",
	} {
		if err := Check(summary, Criteria{Prompt: testPrompt(""), Replaced: 30000, Replacement: 100}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSummaryMustBeSmallerThanWhatItReplaces(t *testing.T) {
	for _, c := range []struct {
		replaced, replacement int
		ok                    bool
	}{{1000, 999, true}, {1000, 1000, false}, {1000, 1001, false}} {
		err := Check(goodSummary, Criteria{Prompt: testPrompt(""), Replaced: c.replaced, Replacement: c.replacement})
		if (err == nil) != c.ok {
			t.Errorf("%d by %d: got %v", c.replaced, c.replacement, err)
		}
	}
}
