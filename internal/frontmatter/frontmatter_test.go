package frontmatter_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/frontmatter"
)

func parse(t *testing.T, text string) frontmatter.Document {
	t.Helper()
	d, err := frontmatter.Parse("x.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFieldsAndBodyAreSeparated(t *testing.T) {
	d := parse(t, "\ufeff---\r\nname: commit\r\ndescription: >\r\n  Two\r\n  lines.\r\nlimit: 3\r\nhidden: yes\r\n---\r\n# Body\r\n\r\n---\r\n")
	for field, want := range map[string]string{"name": "commit", "description": "Two lines.", "limit": "3", "missing": ""} {
		if got, err := d.Text(field); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", field, got, err, want)
		}
	}
	if d.Body != "# Body\n\n---\n" {
		t.Errorf("body = %q", d.Body)
	}
	if hidden, err := d.Flag("hidden", false); err != nil || !hidden {
		t.Errorf("hidden = %v, %v", hidden, err)
	}
	if on, err := d.Flag("missing", true); err != nil || !on {
		t.Errorf("a missing flag = %v, %v; want what is given for that", on, err)
	}
	if !d.Has("name") || d.Has("missing") {
		t.Error("Has is wrong")
	}
}

func TestAFileWithoutFrontMatterIsAllBody(t *testing.T) {
	for _, text := range []string{"", "# Title\n", "----\nx\n", "text\n---\nname: x\n---\n"} {
		if d := parse(t, text); d.Body != text || d.Has("name") {
			t.Errorf("%q: body = %q", text, d.Body)
		}
	}
	if d := parse(t, "---\n---\nbody"); d.Body != "body" {
		t.Errorf("empty front matter: body = %q", d.Body)
	}
}

func TestValuesWithColonsAreTextAsOtherAgentsWriteThem(t *testing.T) {
	d := parse(t, "---\nname: review\ndescription: Use when: the user asks for a review, it's \"urgent\"\nargument-hint: \"[focus]\"\nallowed-tools:\n  - Read\n---\nbody")
	got, err := d.Text("description")
	if want := `Use when: the user asks for a review, it's "urgent"`; err != nil || got != want {
		t.Errorf("description = %q, %v; want %q", got, err, want)
	}
	if got, _ := d.Text("argument-hint"); got != "[focus]" {
		t.Errorf("argument-hint = %q", got)
	}
	if got, _ := d.List("allowed-tools"); len(got) != 1 || got[0] != "Read" {
		t.Errorf("allowed-tools = %q", got)
	}
}

func TestListsAreWrittenInSeveralWays(t *testing.T) {
	want := []string{"Read", "Bash(git log, git diff)", "Grep"}
	for name, text := range map[string]string{
		"with commas": "tools: Read, Bash(git log, git diff), Grep, Read,",
		"in brackets": `tools: [Read, "Bash(git log, git diff)", Grep]`,
		"with dashes": "tools:\n  - Read\n  - Bash(git log, git diff)\n  - Grep",
	} {
		got, err := parse(t, "---\n"+text+"\n---\n").List("tools")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no end", "---\nname: x\n", "x.md:1: the front matter has no end"},
		{"no text", "---\nname: \xff\n---\n", "x.md:1: the file is not text"},
		{"no YAML", "---\nname: x\n\tbad: [1\n---\n", "x.md:"},
		{"a list for a text", "---\na: 1\nname: [x]\n---\n", "x.md:3: name has to be a text"},
		{"a mapping for a list", "---\ntools:\n  a: 1\n---\n", "x.md:2: tools has to be a list"},
		{"a word for a flag", "---\nhidden: perhaps\n---\n", "x.md:2: hidden has to be true or false"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := frontmatter.Parse("x.md", []byte(test.text))
			if err == nil {
				_, err = d.Text("name")
			}
			if err == nil {
				_, err = d.List("tools")
			}
			if err == nil {
				_, err = d.Flag("hidden", false)
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
		})
	}
}

func TestAliasesCannotFillTheMemory(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		previous := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+previous+",", 9) + "*" + previous + "]\n"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := parse(t, bomb+"---\n")
	_, err := d.List("i")
	runtime.ReadMemStats(&after)
	if err == nil || err.Error() != "x.md:10: i has to be a list of texts" {
		t.Errorf("error = %v", err)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 4<<20 {
		t.Errorf("%d bytes were allocated for %d", grew, len(bomb))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"---\na: b\n---\nc", "---\na: [\n---\n", "---\n&a: *a\n---\n", "---\na: &x [*x]\n---\n", "---\n? |\n  x\n: - y\n---"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := frontmatter.Parse("x.md", text)
		if err != nil {
			return
		}
		_, _ = d.Text("a")
		_, _ = d.List("a")
		_, _ = d.Flag("a", true)
	})
}
