package tools_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"keen/internal/permission"
	"keen/internal/tools"
)

func TestReadFileNumbersLines(t *testing.T) {
	d := newDesk(t)
	d.write("a", "one\ntwo\r\n\nfour")
	r := d.run("read_file", args{"path": "a"})
	wantStatus(t, r, tools.StatusSuccess)
	if diff := cmp.Diff("1\tone\n2\ttwo\r\n3\t\n4\tfour\n", r.Output); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.Display.Summary != "4 lines" {
		t.Errorf("summary %q", r.Display.Summary)
	}
}

func TestReadFileSaysHowToGoOn(t *testing.T) {
	d := newDesk(t)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	d.write("big", text.String())
	wantIn(t, d.run("read_file", args{"path": "big"}), "1000\tline 1000\n", "[Lines 1 to 1000 of 5000. Go on with offset 1001.]")
	r := d.run("read_file", args{"path": "big", "offset": 4999})
	if diff := cmp.Diff("4999\tline 4999\n5000\tline 5000\n\n[Lines 4999 to 5000 of 5000.]", r.Output); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r = d.run("read_file", args{"path": "big", "limit": 100_000})
	if len(r.Output) > 50<<10 {
		t.Errorf("the result has %d bytes", len(r.Output))
	}
	wantIn(t, r, "Go on with offset")
	r = d.run("read_file", args{"path": "big", "offset": 6000})
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "only 5000 lines")
}

func TestReadFileClipsLongLines(t *testing.T) {
	d := newDesk(t)
	d.write("min.js", strings.Repeat("é", 200_000)+"\nend\n")
	r := d.run("read_file", args{"path": "min.js"})
	wantIn(t, r, "line of 400000 bytes", "2\tend")
	if len(r.Output) > 4<<10 || strings.ContainsRune(r.Output, utf8.RuneError) {
		t.Errorf("%d bytes, cut inside a character: %v", len(r.Output), strings.ContainsRune(r.Output, utf8.RuneError))
	}
}

func TestReadFileReplacesInvalidText(t *testing.T) {
	d := newDesk(t)
	d.write("latin1", "caf\xe9\n")
	wantIn(t, d.run("read_file", args{"path": "latin1"}), "1\tcaf\uFFFD\n")
}

func TestReadFileExplainsWhatItCannotRead(t *testing.T) {
	d := newDesk(t)
	d.write("image.png", "\x89PNG\x00\x01")
	d.write("utf16.txt", "\xff\xfea\x00")
	d.write("sub/one.go", "")
	d.write("sub/two/x", "")
	d.write("empty", "")
	if err := syscall.Mkfifo(d.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"image.png":  "binary file",
		"utf16.txt":  "UTF-16",
		"sub":        "is a directory; find files in it with glob. It holds: one.go, two/",
		"sub/one.ts": "beside it there is one.go",
		"no/where":   "directory does not exist",
		"pipe":       "no file to read",
	} {
		r := d.run("read_file", args{"path": path})
		wantStatus(t, r, tools.StatusError)
		wantIn(t, r, want)
	}
	r := d.run("read_file", args{"path": "empty"})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "empty")
}

func TestReadFileOfSecretsAsks(t *testing.T) {
	d := newDesk(t)
	d.write(".env", "KEY=1\n")
	wantStatus(t, d.run("read_file", args{"path": ".env"}), tools.StatusDenied)
	d.write("sub/x", "KEY=2\n")
	r := d.run("grep", args{"pattern": "KEY"})
	wantIn(t, r, "sub/x", "1 file that may hold secrets left out")
	if strings.Contains(r.Output, "KEY=1") {
		t.Errorf("shows the secret:\n%s", r.Output)
	}
}

func TestWriteFileMakesFilesAndDirectories(t *testing.T) {
	d := newDesk(t, "write_file")
	r := d.run("write_file", args{"path": "a/b/c.txt", "content": "one\ntwo"})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "Made a/b/c.txt: 2 lines, 7 bytes")
	if got := d.read("a/b/c.txt"); got != "one\ntwo" {
		t.Errorf("holds %q", got)
	}
	wantDiff := "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
	if diff := cmp.Diff(wantDiff, r.Display.Diff); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	q := d.asked.last()
	want := permission.Request{
		Tool: "write_file", Verdict: permission.VerdictAsk, Action: "Write a/b/c.txt", Paths: []string{d.path("a/b/c.txt")},
		Write: true, Reason: "writes to a/b/c.txt", Pattern: "write_file", Diff: wantDiff,
	}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWritingKeepsModesAndLinks(t *testing.T) {
	d := newDesk(t, "write_file", "edit_file")
	d.write("bin/run.sh", "old\n")
	if err := os.Chmod(d.path("bin/run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	d.link("bin/run.sh", "run")
	wantStatus(t, d.run("write_file", args{"path": "run", "content": "new\n"}), tools.StatusSuccess)
	wantStatus(t, d.run("edit_file", args{"path": "run", "old_string": "new", "new_string": "newer"}), tools.StatusSuccess)
	if info, err := os.Lstat(d.path("run")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(d.path("bin/run.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if got := d.read("bin/run.sh"); got != "newer\n" {
		t.Errorf("holds %q", got)
	}
	if entries, _ := os.ReadDir(d.path("bin")); len(entries) != 1 {
		t.Errorf("left something behind: %v", entries)
	}
}

func TestWritingNeedsPermissionAndChangesNothingWithout(t *testing.T) {
	d := newDesk(t)
	d.write("a", "one\n")
	d.link("/etc", "config")
	for _, c := range []struct {
		tool  string
		input args
	}{
		{"write_file", args{"path": "a", "content": "two\n"}},
		{"write_file", args{"path": "new/file", "content": ""}},
		{"edit_file", args{"path": "a", "old_string": "one", "new_string": "two"}},
		{"write_file", args{"path": "config/keen-test", "content": ""}},
		{"write_file", args{"path": ".git/hooks/pre-commit", "content": ""}},
	} {
		wantStatus(t, d.run(c.tool, c.input), tools.StatusDenied)
	}
	if got := d.read("a"); got != "one\n" {
		t.Errorf("a holds %q", got)
	}
	for _, name := range []string{"new", ".git"} {
		if _, err := os.Lstat(d.path(name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

func TestWritingStopsWhenTheFileChangedWhileAsking(t *testing.T) {
	d := newDesk(t, "edit_file", "write_file")
	d.write("a", "one\n")
	d.asked.before = func(q permission.Request) {
		if q.Write {
			d.write("a", "somebody else\n")
		}
	}
	r := d.run("edit_file", args{"path": "a", "old_string": "one", "new_string": "two"})
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "changed by somebody else")

	d.asked.before = func(permission.Request) {
		_ = os.Remove(d.path("a"))
		_ = os.Symlink("/etc/keen-test", d.path("a"))
	}
	r = d.run("write_file", args{"path": "a", "content": "x"})
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "leads elsewhere")
}

func TestEditFileReplacesExactText(t *testing.T) {
	for _, c := range []struct {
		name, before, old, new, after string
		all                           bool
	}{
		{"one place", "a\nb\nc\n", "b", "B", "a\nB\nc\n", false},
		{"all places", "a a\na\n", "a", "b", "b b\nb\n", true},
		{"several lines", "f {\n\tx\n}\n", "f {\n\tx\n", "g {\n", "g {\n}\n", false},
		{"windows line ends are kept", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n", false},
		{"new lines get them too", "a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n", false},
		{"a mixed file is not touched elsewhere", "a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n", false},
		{"bytes that are no text survive", "\xe9 a\n", "a", "b", "\xe9 b\n", false},
		{"removal", "a\nb\n", "a\n", "", "b\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, "edit_file")
			d.write("f", c.before)
			r := d.run("edit_file", args{"path": "f", "old_string": c.old, "new_string": c.new, "replace_all": c.all})
			wantStatus(t, r, tools.StatusSuccess)
			if got := d.read("f"); got != c.after {
				t.Errorf("got %q, want %q", got, c.after)
			}
			if r.Display.Diff == "" || !strings.HasPrefix(r.Display.Summary, "+") {
				t.Errorf("display %+v", r.Display)
			}
		})
	}
}

func TestEditFileExplainsWhyItCannot(t *testing.T) {
	d := newDesk(t, "edit_file")
	d.write("f.go", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"several places", "return 1", "return 2", []string{"occurs 2 times", "lines 2, 6", "replace_all"}},
		{"other white space", "func a() {\n    return 1\n}", "x", []string{"lines 1 to 3", "white space", "\treturn 1"}},
		{"line numbers", "1\tfunc a() {\n2\t\treturn 1", "x", []string{"line numbers"}},
		{"first line only", "func b() {\n\treturn 3\n}", "x", []string{"first line", "line 5"}},
		{"nowhere", "func c()", "x", []string{"not in f.go", "read the file again"}},
		{"empty", "", "x", []string{"write_file"}},
		{"no change", "func a", "func a", []string{"nothing to change"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := d.run("edit_file", args{"path": "f.go", "old_string": c.old, "new_string": c.new})
			wantStatus(t, r, tools.StatusError)
			wantIn(t, r, c.want...)
		})
	}
	r := d.run("edit_file", args{"path": "g.go", "old_string": "a", "new_string": "b"})
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "there is no file g.go")
}

func TestGlobFindsTheNewestFirst(t *testing.T) {
	d := newDesk(t)
	d.write(".gitignore", "build/\n")
	base := time.Now().Add(-time.Hour)
	for i, name := range []string{"a.go", "sub/b.go", "sub/deep/c.go", "d.txt", "build/e.go"} {
		d.write(name, "")
		at := base.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(d.path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		input args
		want  string
	}{
		{args{"pattern": "**/*.go"}, "sub/deep/c.go\nsub/b.go\na.go\n"},
		{args{"pattern": "*.{go,txt}"}, "d.txt\na.go\n"},
		{args{"pattern": "*.go", "path": "sub"}, "sub/b.go\n"},
		{args{"pattern": "sub/*.go"}, "sub/b.go\n"},
		{args{"pattern": d.path("sub") + "/**"}, "sub/deep/c.go\nsub/b.go\n"},
		{args{"pattern": "**/*.go", "limit": 1}, "sub/deep/c.go\n\n[The 1 most recently changed of 3 files. A narrower pattern or path, or a larger limit, shows others.]\n"},
		{args{"pattern": "c.go"}, "No file matches. A pattern without a slash looks in one directory only; **/c.go looks in all.\n"},
	} {
		r := d.run("glob", c.input)
		wantStatus(t, r, tools.StatusSuccess)
		if diff := cmp.Diff(c.want, r.Output); diff != "" {
			t.Errorf("%v: -want +got:\n%s", c.input, diff)
		}
	}
	wantStatus(t, d.run("glob", args{"pattern": "../*"}), tools.StatusDenied)
	wantStatus(t, d.run("glob", args{"pattern": "*", "path": "nowhere"}), tools.StatusError)
}

func TestGlobOfManyFilesIsCutAndCounted(t *testing.T) {
	d := newDesk(t)
	for i := range 1500 {
		d.write(fmt.Sprintf("f/%04d", i), "")
	}
	r := d.run("glob", args{"pattern": "f/*"})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "[The 200 most recently changed of 1500 files.")
	if r.Display.Summary != "1500 files" {
		t.Errorf("summary %q", r.Display.Summary)
	}
}

func TestGrepModes(t *testing.T) {
	d := newDesk(t)
	d.write("a.go", "one\nfoo 1\nthree\nfour\nfive\nsix\nfoo 2\n")
	d.write("b.txt", "foo\n")
	d.write("sub/c.go", "Foo\r\n")
	d.write("bin", "foo\x00foo\n")
	d.write(".gitignore", "ignored\n")
	d.write("ignored/d.go", "foo\n")
	for _, c := range []struct {
		name    string
		input   args
		want    string
		summary string
	}{
		{"content", args{"pattern": "foo"}, "a.go\n2:foo 1\n7:foo 2\n\nb.txt\n1:foo\n", "3 matches in 2 files"},
		{"context", args{"pattern": "foo", "include": "*.go", "context": 1}, "a.go\n1-one\n2:foo 1\n3-three\n--\n6-six\n7:foo 2\n", "2 matches in 1 file"},
		{"context that meets", args{"pattern": "foo", "include": "a.*", "context": 2}, "a.go\n1-one\n2:foo 1\n3-three\n4-four\n5-five\n6-six\n7:foo 2\n", "2 matches in 1 file"},
		{"files", args{"pattern": "foo", "output_mode": "files"}, "a.go\nb.txt\n", "2 files"},
		{"count", args{"pattern": "foo", "output_mode": "count"}, "a.go:2\nb.txt:1\n", "3 matches in 2 files"},
		{"case", args{"pattern": "^foo$", "ignore_case": true}, "b.txt\n1:foo\n\nsub/c.go\n1:Foo\n", "2 matches in 2 files"},
		{"include by path", args{"pattern": "(?i)foo", "include": "sub/**"}, "sub/c.go\n1:Foo\n", "1 match in 1 file"},
		{"one file", args{"pattern": "five", "path": "a.go"}, "a.go\n5:five\n", "1 match in 1 file"},
		{"an ignored file by name", args{"pattern": "foo", "path": "ignored/d.go"}, "ignored/d.go\n1:foo\n", "1 match in 1 file"},
		{"nothing", args{"pattern": "absent"}, "No match.\n", "no match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := d.run("grep", c.input)
			wantStatus(t, r, tools.StatusSuccess)
			if diff := cmp.Diff(c.want, r.Output); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if r.Display.Summary != c.summary {
				t.Errorf("summary %q, want %q", r.Display.Summary, c.summary)
			}
		})
	}
}

func TestGrepBeyondTheLimitIsCutAndNoError(t *testing.T) {
	d := newDesk(t)
	d.write("a", strings.Repeat("hit\n", 3000))
	d.write("b", strings.Repeat("hit "+strings.Repeat("x", 300)+"\n", 3000))
	r := d.run("grep", args{"pattern": "hit"})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "200:hit", "Stopped after 200 matches in 1 file; there are more")
	r = d.run("grep", args{"pattern": "hit", "path": "b", "limit": 3000})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "there are more")
	if len(r.Output) > 50<<10 {
		t.Errorf("the result has %d bytes", len(r.Output))
	}
	r = d.run("grep", args{"pattern": "hit", "output_mode": "files", "limit": 1})
	wantIn(t, r, "a\n", "there are more")
	r = d.run("grep", args{"pattern": "hit", "path": "a", "limit": 3000})
	if strings.Contains(r.Output, "more") {
		t.Error("a limit that is just reached is called too small")
	}
}

func TestGrepFindsHitsOnLinesOfAnyLength(t *testing.T) {
	d := newDesk(t)
	long := strings.Repeat("0123456789", 30_000)
	d.write("long", long+"NEEDLE"+long+"\nNEEDLE after\n")
	huge := strings.Repeat("abcdefgh", 150_000)
	// A match that lies on the edge of a window, and one at each end.
	edge := huge[:1<<20-3] + "NEEDLE" + huge
	d.write("huge", edge+"\nNEEDLE"+huge+"\n"+huge+"NEEDLE\n")
	r := d.run("grep", args{"pattern": "NEEDLE"})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "huge\n1:[...] ", "\n2:NEEDLEabc", "\n3:[...] ", "long\n1:[...] ", "\n2:NEEDLE after")
	if got := strings.Count(r.Output, "NEEDLE"); got != 5 {
		t.Errorf("%d hits are shown, want 5", got)
	}
	if len(r.Output) > 4<<10 {
		t.Errorf("the result has %d bytes", len(r.Output))
	}
	for pattern, want := range map[string]int{"^NEEDLE": 2, "NEEDLE$": 1, ".*NEEDLE": 5, "NEEDLE.*": 5, "^abc": 2, "nowhere": 0} {
		r := d.run("grep", args{"pattern": pattern})
		got := 0
		for l := range strings.Lines(r.Output) {
			if len(l) > 1 && l[0] >= '1' && l[0] <= '9' && l[1] == ':' {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d lines, want %d", pattern, got, want)
		}
	}
}

func TestSearchesStopWithTheContext(t *testing.T) {
	d := newDesk(t)
	d.write("a", "x\n")
	ctx, cancel := context.WithCancel(t.Context())
	d.asked.before = func(permission.Request) { cancel() }
	for tool, input := range map[string]args{"grep": {"pattern": "x"}, "glob": {"pattern": "*"}, "read_file": {"path": "a"}} {
		r := d.runWith(ctx, tool, input, nil)
		wantStatus(t, r, tools.StatusCancelled)
	}
}
