package filesystem_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/filesystem"
)

// tree makes the files of a project; a value is a file's text.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	return root
}

func walk(t *testing.T, root string) []string {
	t.Helper()
	var got []string
	_, err := filesystem.Walk(t.Context(), root, func(e filesystem.Entry) error {
		got = append(got, e.Rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWalkHonoursIgnoreFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		ignore map[string]string
		files  string
		want   string
	}{
		{"a name at any depth", map[string]string{".gitignore": "*.log\n"}, "a.log b/c.log b/d", "b/d"},
		{"a directory by name", map[string]string{".gitignore": "build/\n"}, "build/x sub/build/y z/build", "z/build"},
		{"an anchored path", map[string]string{".gitignore": "/out\n"}, "out/x sub/out/y", "sub/out/y"},
		{"an inner slash anchors", map[string]string{".gitignore": "a/b\n"}, "a/b/x c/a/b/y", "c/a/b/y"},
		{"comments and blank lines", map[string]string{".gitignore": "# *\n\n\\#x\n"}, "a #x", "a"},
		{"the last rule wins", map[string]string{".gitignore": "*.log\n!keep.log\n"}, "a.log keep.log", "keep.log"},
		{"only some files wanted", map[string]string{".gitignore": "*\n!*/\n!*.go\n"}, "a.go a.txt d/b.go d/b.txt d/e/c.txt", "a.go d/b.go"},
		{"a directory brought back keeps its rules", map[string]string{".gitignore": "*.log\n/*\n!/a/\n"}, "a/x a/y.log b/x", "a/x"},
		{"deep patterns", map[string]string{".gitignore": "a/**\n!a/**/\n!a/**/keep\n"}, "a/x a/b/keep a/b/y", "a/b/keep"},
		{"double stars between", map[string]string{".gitignore": "a/**/z\n"}, "a/z a/b/c/z a/b/y", "a/b/y"},
		{"nested files come later", map[string]string{".gitignore": "*.gen\n", "sub/.gitignore": "!*.gen\n/local\n"}, "a.gen local sub/b.gen sub/local", "local sub/b.gen"},
		{"a nested file speaks for its directory", map[string]string{"sub/.gitignore": "x\n"}, "x sub/x sub/y/x", "x"},
		{"windows line ends", map[string]string{".gitignore": "*.log\r\nbuild/\r\n"}, "a.log build/x b", "b"},
		{"info/exclude", map[string]string{".git/info/exclude": "private\n"}, "private/x y", "y"},
		{"a rule of the project beats info/exclude", map[string]string{".git/info/exclude": "p\n", ".gitignore": "!p\n"}, "p y", "p y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{".git/HEAD": "ref"}
			for name, text := range c.ignore {
				files[name] = text
			}
			for _, name := range strings.Fields(c.files) {
				files[name] = ""
			}
			var got []string
			for _, name := range walk(t, tree(t, files)) {
				if filepath.Base(name) != ".gitignore" {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(strings.Fields(c.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWalkBelowTheTopKnowsTheRulesAbove(t *testing.T) {
	root := tree(t, map[string]string{
		".git/HEAD": "", ".gitignore": "*.log\n/dist/\n", "sub/a.log": "", "sub/b": "", "dist/c": "", "dist/d.log": "",
	})
	if diff := cmp.Diff([]string{"b"}, walk(t, filepath.Join(root, "sub"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// An ignored directory that is asked for by name is walked.
	if diff := cmp.Diff([]string{"c", "d.log"}, walk(t, filepath.Join(root, "dist"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWalkNeverEntersGit(t *testing.T) {
	root := tree(t, map[string]string{".git/config": "", "a": "", "module/.git/HEAD": "", "module/b": ""})
	if diff := cmp.Diff([]string{"a", "module/b"}, walk(t, root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := walk(t, filepath.Join(root, ".git")); got != nil {
		t.Errorf("found %v in .git", got)
	}
}

func TestWalkReportsLinksAndDoesNotFollowThem(t *testing.T) {
	root := tree(t, map[string]string{"a/b": ""})
	link(t, "..", filepath.Join(root, "a", "up"))
	link(t, "/etc/passwd", filepath.Join(root, "passwd"))
	if diff := cmp.Diff([]string{"a/b", "a/up", "passwd"}, walk(t, root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWalkOfAFileIsTheFile(t *testing.T) {
	root := tree(t, map[string]string{".git/HEAD": "", ".gitignore": "x\n", "x": ""})
	if diff := cmp.Diff([]string{"x"}, walk(t, filepath.Join(root, "x"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWalkEndsWhenAsked(t *testing.T) {
	root := tree(t, map[string]string{"a": "", "b": "", "c/d": ""})
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name string
		fn   func() error
		want error
	}{
		{"skip all", func() error { return fs.SkipAll }, nil},
		{"an error", func() error { return boom }, boom},
		{"the context", func() error { cancel(); return nil }, context.Canceled},
	} {
		calls := 0
		_, err := filesystem.Walk(ctx, root, func(filesystem.Entry) error { calls++; return c.fn() })
		if !errors.Is(err, c.want) || calls != 1 {
			t.Errorf("%s: %d calls, error %v, want 1 and %v", c.name, calls, err, c.want)
		}
	}
}

func TestWalkCountsWhatItCannotRead(t *testing.T) {
	root := tree(t, map[string]string{"a": "", "closed/b": ""})
	closed := filepath.Join(root, "closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) })
	if _, err := os.ReadDir(closed); err == nil {
		t.Skip("permissions do not bind this user")
	}
	n, err := filesystem.Walk(t.Context(), root, func(filesystem.Entry) error { return nil })
	if err != nil || n != 1 {
		t.Errorf("got %d, %v, want 1 unreadable directory", n, err)
	}
}

func TestWalkOfNothingIsAnError(t *testing.T) {
	if _, err := filesystem.Walk(t.Context(), filepath.Join(t.TempDir(), "x"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
