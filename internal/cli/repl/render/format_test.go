package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
)

func TestFiguresAreShort(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct{ got, want string }{
		{render.Duration(-time.Second), "0.0s"},
		{render.Duration(440 * time.Millisecond), "0.4s"},
		{render.Duration(9949 * time.Millisecond), "9.9s"},
		{render.Duration(9960 * time.Millisecond), "10s"},
		{render.Duration(59600 * time.Millisecond), "1m 0s"},
		{render.Duration(65 * time.Second), "1m 5s"},
		{render.Duration(2*time.Hour + 3*time.Minute), "2h 3m"},
		{render.Elapsed(900 * time.Millisecond), "0s"},
		{render.Elapsed(9900 * time.Millisecond), "9s"},
		{render.Elapsed(59900 * time.Millisecond), "59s"},
		{render.Elapsed(65 * time.Second), "1m 5s"},
		{render.Tokens(0), "0"},
		{render.Tokens(999), "999"},
		{render.Tokens(1000), "1k"},
		{render.Tokens(12345), "12.3k"},
		{render.Tokens(99_949), "99.9k"},
		{render.Tokens(99_950), "100k"},
		{render.Tokens(999_499), "999k"},
		{render.Tokens(999_500), "1M"},
		{render.Tokens(1_540_000), "1.5M"},
		{render.Percent(1, 8), "12.5%"},
		{render.Percent(1, 0), render.Unknown},
		{render.Cost(0), "$0.00"},
		{render.Cost(0.001), "<$0.01"},
		{render.Cost(12.345), "$12.35"},
		{render.Age(30 * time.Second), "just now"},
		{render.Age(5 * time.Minute), "5m ago"},
		{render.Age(3 * time.Hour), "3h ago"},
		{render.Age(2 * day), "2d ago"},
		{render.Age(130 * day), "4mo ago"},
		{render.Age(800 * day), "2y ago"},
		{render.Path("/home/me/src", "/home/me"), "~/src"},
		{render.Path("/home/me", "/home/me/"), "~"},
		{render.Path("/home/mean", "/home/me"), "/home/mean"},
		{render.Path("/srv", ""), "/srv"},
	}
	for i, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("case %d: got %q, want %q", i, tt.got, tt.want)
		}
	}
}

func TestThemeFollowsTerminalThenSettingThenBackground(t *testing.T) {
	tests := []struct {
		options render.ThemeOptions
		want    string
	}{
		{render.ThemeOptions{}, "dark"},
		{render.ThemeOptions{Name: "auto", Background: render.BackgroundLight}, "light"},
		{render.ThemeOptions{Name: "dark", Background: render.BackgroundLight}, "dark"},
		{render.ThemeOptions{Name: "light"}, "light"},
		{render.ThemeOptions{Name: "no-color"}, "no-color"},
		{render.ThemeOptions{Name: "dark", NoColor: "1"}, "no-color"},
		{render.ThemeOptions{NoColor: "1", Term: "dumb"}, "dumb"},
	}
	for _, tt := range tests {
		theme, err := render.SelectTheme(tt.options)
		if err != nil {
			t.Errorf("%+v: %v", tt.options, err)
			continue
		}
		if theme.Name != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.options, theme.Name, tt.want)
		}
	}
	if _, err := render.SelectTheme(render.ThemeOptions{Name: "pink", Term: "dumb"}); err == nil {
		t.Error("an unknown theme was accepted")
	}
}

func TestPermissionChoicesFollowTheRequest(t *testing.T) {
	p := render.Permission{Pattern: "go test *"}
	if got := p.Move(-1); got != render.AllowOnce {
		t.Errorf("before the first choice comes %v", got)
	}
	if got := p.Move(2); got != render.AllowProject {
		t.Errorf("the third choice is %v", got)
	}
	p.Dangerous = true
	if got := p.Move(1); got != render.Deny {
		t.Errorf("a dangerous request goes from once to %v", got)
	}
	if got := p.Move(9); got != render.Deny {
		t.Errorf("behind the last choice comes %v", got)
	}
}

func TestDiffCountsIgnoreTheNamesOfFiles(t *testing.T) {
	added, removed := render.DiffCounts(editDiff + "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- was a comment\n+++ is one\n")
	if added != 4 || removed != 3 {
		t.Errorf("got +%d -%d, want +4 -3", added, removed)
	}
}

func TestCodeIsBrokenBetweenWordsAndKeepsEverySpace(t *testing.T) {
	for text, want := range map[string][]string{
		"make  install all":      {"make  ", "install ", "all"},
		"cp /usr/local/share x":  {"cp ", "/usr/", "local/", "share x"},
		"averyverylongword":      {"averyveryl", "ongword"},
		"    indented words":     {"    indent", "ed words"},
		"日本語日本語":                 {"日本語日本", "語"},
		"":                       {""},
		"one\ntwo":               {"one", "two"},
		"/a/path/that/goes/on":   {"/a/path/", "that/goes/", "on"},
		"exactly 10":             {"exactly 10"},
		"a      b            cd": {"a      b  ", "          ", "cd"},
	} {
		if diff := cmp.Diff(want, render.CodeWrap(text, 10)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got := strings.Join(render.CodeWrap(strings.Repeat("word and ", 2_000), 12), ""); got != strings.Repeat("word and ", 2_000) {
		t.Error("a long line is not kept as it is")
	}
}
