package render_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

var update = flag.Bool("update", false, "write the golden files anew")

const editDiff = `--- a/main.go
+++ b/main.go
@@ -8,4 +8,5 @@ func main() {
 	a := 1
-	b := 2
+	b := 3
+	c := "a long line that has to be wrapped because it does not fit the screen at all"
 	use(a, b)
 }
@@ -100 +101 @@
-old
+new
\ No newline at end of file
`

const buildOutput = "ok  \tkeen/internal/llm\t1.2s\nok  \tkeen/internal/tools\t0.4s\nprogress 10%\rprogress 100%\n--- FAIL: TestX\nFAIL\n"

func cost(dollars float64) *float64 { return &dollars }

// goldens are pictures that a reviewer can look at, one file each.
func goldens() map[string]func(*render.Theme) []string {
	exit := 1
	return map[string]func(*render.Theme) []string{
		"markdown": func(t *render.Theme) []string { return render.NewMarkdown(t, 60).Render(sample) },
		"narrow":   func(t *render.Theme) []string { return render.NewMarkdown(t, 14).Render(sample) },
		"turn": func(t *render.Theme) []string {
			return join(
				render.UserMessage(t, "Fix the failing test\nand say why it failed, please; the text goes on here", 50),
				render.Reasoning(t, "The user wants the test to pass.\nI should run it first.", render.ReasoningShown, 50),
				render.Reasoning(t, "The user wants it.\nIndeed.", render.ReasoningCollapsed, 50),
				render.ToolBlock(t, render.Tool{Label: "Read internal/llm/loop.go", Status: tools.StatusSuccess, Summary: "241 lines", Duration: 40 * time.Millisecond}, 50),
				render.ToolBlock(t, render.Tool{Label: "Run go test ./...", Command: "go test ./...", Output: buildOutput, Status: tools.StatusSuccess, ExitCode: &exit, Duration: 65 * time.Second, MaxLines: 3}, 50),
				render.ToolBlock(t, render.Tool{Label: "Run go test ./...", Command: "go test ./...", Output: buildOutput, Frame: "*", Duration: 3 * time.Second, MaxLines: 2}, 50),
				render.ToolBlock(t, render.Tool{Label: "Edit main.go", Status: tools.StatusSuccess, Summary: "+3 -2", Diff: editDiff, Duration: 200 * time.Millisecond}, 50),
				render.ToolBlock(t, render.Tool{Label: "Read gone.go", Status: tools.StatusError, Output: "Error: no such file: gone.go", Duration: time.Millisecond}, 50),
				render.ToolBlock(t, render.Tool{Label: "Run rm -rf build", Status: tools.StatusDenied}, 50),
				render.Interrupted(t, 50),
				render.ErrorBlock(t, render.Failure{What: "The model refused the request: the key is not valid.", Detail: "401 invalid x-api-key", Do: []string{"Run /login to enter another key.", "Run /model to choose another provider."}}, 50),
				[]string{render.TurnTime(t, 65*time.Second, 50)},
			)
		},
		"permission": func(t *render.Theme) []string {
			command := render.Permission{Tool: "bash", Action: "Run a command", Command: "go test ./... && echo \x1b[8mhidden", Reason: "runs go", Pattern: "go test *", Choice: render.AllowProject, Waiting: 2}
			waiting, settling := command, command
			waiting.Keys, settling.Keys = render.CardWaits, render.CardGotKeys
			change := render.Permission{Tool: "edit_file", Action: "Edit main.go", Paths: []string{"/home/me/main.go"}, Diff: editDiff, Reason: "writes main.go", Height: 12}
			scrolled := change
			scrolled.Offset, scrolled.Height = 4, 16
			return join(
				permissionCard(t, command, 50), []string{""}, permissionCard(t, waiting, 50), []string{""}, permissionCard(t, settling, 50), []string{""},
				permissionCard(t, render.Permission{Tool: "bash", Action: "Run a command", Command: "rm -rf build", Reason: "removes files", Dangerous: true, Choice: render.Deny, Message: "use make clean"}, 50),
				[]string{""}, permissionCard(t, change, 50), []string{""}, permissionCard(t, scrolled, 50),
			)
		},
		"context": func(t *render.Theme) []string {
			return join(
				render.ContextBar(t, render.ContextUse{System: 3200, Tools: 5100, User: 900, Assistant: 12000, ToolResults: 61000, Budget: 164000, Window: 200000, Threshold: 147600}, 64),
				[]string{""},
				render.ContextBar(t, render.ContextUse{System: 3200, Tools: 5100}, 64),
			)
		},
		"status": func(t *render.Theme) []string {
			full := render.Status{
				Model: "anthropic/claude", Dir: "/home/me/src/keen", Home: "/home/me", Branch: "main", Mode: "plan", Thinking: "high",
				Context: &render.ContextFigure{Used: 120000, Budget: 164000}, Tokens: &render.TokenFigure{In: 1234567, Out: 4321}, Cost: cost(1.234),
			}
			return join(
				render.StatusLines(t, full, 80), render.StatusLines(t, full, 44), render.StatusLines(t, full, 16),
				render.StatusLines(t, render.Status{Dir: "/srv", Context: &render.ContextFigure{Used: 500}}, 80),
				render.StatusLines(t, render.Status{Model: "m", Dir: "/srv"}, 80),
				[]string{render.LoaderLine(t, render.Loader{Frame: "*", Text: "Compacting...", Elapsed: 65 * time.Second, Hint: "esc to interrupt", Notification: "Copied to clipboard"}, 80)},
				[]string{render.LoaderLine(t, render.Loader{Frame: "*", Text: "Compacting...", Elapsed: 65 * time.Second, Hint: "esc to interrupt", Notification: "Copied to clipboard"}, 38)},
				[]string{render.Notification(t, "Queue cleared", 80)},
				render.QueueBand(t, []string{"first prompt", "second prompt\nwith more\nlines"}, 1, 40),
			)
		},
		"tables": func(t *render.Theme) []string {
			usage := render.TableData{Headers: []string{"Model", "In", "Out"}, Rows: [][]string{{"claude, a model with a long name", "1.2M", "34k"}, {"gpt", "950", "12"}}, Right: []int{1, 2}}
			help := []render.HelpSection{
				{Title: "Commands", Entries: []render.HelpEntry{{Name: "/compact [hint]", Text: "replace the conversation by a summary of it, which makes room"}, {Name: "/exit", Text: "quit"}}},
				{Title: "Keys", Entries: []render.HelpEntry{{Name: "esc", Text: "interrupt"}}},
			}
			return join(render.Table(t, usage, 60), []string{""}, render.Table(t, usage, 30), []string{""}, render.Table(t, usage, 16), []string{""},
				render.HelpTable(t, help, 60), []string{""}, render.HelpTable(t, help, 24))
		},
		"welcome": func(t *render.Theme) []string {
			return join(
				render.WelcomeScreen(t, render.Welcome{Version: "v1.0.0", Dir: "/home/me/src", Home: "/home/me", Model: "openai/gpt", Last: "Fix the test, 3h ago; /resume", Notices: []string{"The context window of this model is unknown."}, Tips: []string{"Type @ to name a file."}}, 60),
				[]string{""},
				render.WelcomeScreen(t, render.Welcome{Dir: "/srv"}, 60),
				[]string{render.Rule(t, "plan", 30), render.Rule(t, "", 30)},
			)
		},
		"replay": func(t *render.Theme) []string {
			m := render.NewMarkdown(t, 50)
			var lines []string
			for _, item := range []session.ReplayItem{
				{Kind: session.ReplayUser, Text: "hello"},
				{Kind: session.ReplayText, Text: "An **answer**."},
				{Kind: session.ReplayTool, Tool: &llm.HistoricalToolActivity{Tool: "read_file", Input: []byte(`{"path":"main.go"}`), Status: tools.StatusSuccess, Summary: "12 lines", DurationMS: 300}},
				{Kind: session.ReplayNudge, Text: "go on"},
				{Kind: session.ReplayInterrupted},
				{Kind: session.ReplayIncomplete, Text: "The turn stopped early."},
				{Kind: session.ReplayError, Text: "The provider is overloaded."},
				{Kind: session.ReplaySummary, Text: "## Summary\nDone."},
				{Kind: session.ReplayStatus, Text: session.StatusContextCompacted},
				{Kind: session.ReplayCommand, Text: "false", Output: "", ExitCode: &exit},
			} {
				lines = append(lines, render.ReplayItem(m, item)...)
			}
			return lines
		},
	}
}

func permissionCard(t *render.Theme, p render.Permission, width int) []string {
	lines, _ := render.PermissionCard(t, p, render.PermissionBody(t, p, width), width)
	return lines
}

func join(parts ...[]string) []string {
	var lines []string
	for _, p := range parts {
		lines = append(lines, p...)
	}
	return lines
}

func TestGoldenViews(t *testing.T) {
	for name, draw := range goldens() {
		t.Run(name, func(t *testing.T) { compareGolden(t, name+".txt", draw(render.Dumb())) })
	}
	for _, theme := range []*render.Theme{render.Dark(), render.Light(), render.NoColor()} {
		t.Run(theme.Name, func(t *testing.T) {
			compareGolden(t, "theme-"+theme.Name+".txt", join(goldens()["turn"](theme), goldens()["markdown"](theme)))
		})
	}
}

// compareGolden compares lines with a file in which escape characters are
// visible.
func compareGolden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "␛")
	got = strings.ReplaceAll(got, "\a", "␇")
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), run with -update after looking at it:\n%s", path, diff)
	}
}
