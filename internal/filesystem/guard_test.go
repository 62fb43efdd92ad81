package filesystem_test

import (
	"os"
	"path/filepath"
	"testing"

	"keen/internal/filesystem"
)

// place is a home directory with a project in it.
type place struct {
	home, project, spill string
	guard                *filesystem.Guard
}

func newPlace(t *testing.T) place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{home: filepath.Join(base, "home"), spill: filepath.Join(base, "spill")}
	p.project = filepath.Join(p.home, "project")
	mkdir(t, filepath.Join(p.project, "sub"))
	p.guard, err = filesystem.NewGuard(p.project, filesystem.Options{Home: p.home, Readable: []string{p.spill}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestGuardDecides(t *testing.T) {
	p := newPlace(t)
	link(t, "/etc/passwd", filepath.Join(p.project, "passwd"))
	link(t, "/etc", filepath.Join(p.project, "config"))
	link(t, "sub", filepath.Join(p.project, "inner"))
	link(t, filepath.Join(p.home, "not-yet"), filepath.Join(p.project, "dangling"))
	mkdir(t, filepath.Join(p.home, "other", "deep"))
	link(t, filepath.Join(p.home, "other", "deep"), filepath.Join(p.project, "jump"))

	const read, write = filesystem.AccessRead, filesystem.AccessWrite
	const allow, ask, deny = filesystem.VerdictAllow, filesystem.VerdictAsk, filesystem.VerdictDeny
	for _, c := range []struct {
		name, path string
		access     filesystem.Access
		want       filesystem.Verdict
		inside     bool
	}{
		{"reads in the working directory are allowed", "main.go", read, allow, true},
		{"the working directory itself", ".", read, allow, true},
		{"an absolute path inside", p.project + "/sub/x", read, allow, true},
		{"a file that does not exist yet", "a/b/c.go", read, allow, true},
		{"a link that stays inside", "inner/x", read, allow, true},
		{"writes ask", "main.go", write, ask, true},
		{"reads outside ask", "../other/x", read, ask, false},
		{"home", "~/notes", read, ask, false},
		{"a link to a file outside", "passwd", read, ask, false},
		{"a link to a directory outside", "config/hosts", read, ask, false},
		{"writing through it into the system", "config/hosts", write, deny, false},
		{"a new file through it", "config/new/file", write, deny, false},
		{"a dangling link leads where it points", "dangling", write, ask, false},
		{"the parent of a link is its target's", "jump/../x", read, ask, false},
		{"not the parent by text", "jump/../../project/x", read, allow, true},
		{"system directories", "/etc/hosts", write, deny, false},
		{"a system directory itself", "/usr", write, deny, false},
		{"whole components only", "/etcetera/x", write, ask, false},
		{"whole components only, again", "/usr2/x", write, ask, false},
		{"reading them only asks", "/etc/hosts", read, ask, false},
		{"the root directory", "/", write, deny, false},
		{"devices are no files", "/dev/null", write, allow, false},
		{"other devices are", "/dev/sda", write, deny, false},
		{"keys", "~/.ssh/config", read, ask, false},
		{"keys are never written", "~/.ssh/authorized_keys", write, deny, false},
		{"secrets in the project", ".env", read, ask, true},
		{"secrets for one environment", "deploy/.env.production", read, ask, true},
		{"an example is none", ".env.example", read, allow, true},
		{"private keys in the project", "certs/server.key", read, ask, true},
		{"git's own files are not written", ".git/hooks/pre-commit", write, deny, true},
		{"git's ignore file is not git's own", ".gitignore", write, ask, true},
		{"spilled output is readable", p.spill + "/out.txt", read, allow, false},
		{"but not writable", p.spill + "/out.txt", write, ask, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := p.guard.Check(c.path, c.access)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != c.want || got.Inside != c.inside {
				t.Errorf("%s %s: got %s inside=%v (%s, %s), want %s inside=%v", c.access, c.path, got.Verdict, got.Inside, got.Path, got.Reason, c.want, c.inside)
			}
			if (got.Reason == "") != (got.Verdict == allow) {
				t.Errorf("reason %q with verdict %s", got.Reason, got.Verdict)
			}
		})
	}
}

func TestGuardRefusesPathsThatLeadNowhere(t *testing.T) {
	p := newPlace(t)
	link(t, "loop", filepath.Join(p.project, "loop"))
	for _, path := range []string{"", "a\x00b", "loop", "loop/x"} {
		if got, err := p.guard.Check(path, filesystem.AccessRead); err == nil {
			t.Errorf("%q was resolved to %s", path, got.Path)
		}
	}
}

func TestGuardOfADirectoryInTheSystemAllowsWorkThere(t *testing.T) {
	g, err := filesystem.NewGuard("/usr", filesystem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]filesystem.Verdict{"src/app/x.go": filesystem.VerdictAsk, "/etc/x": filesystem.VerdictDeny} {
		got, err := g.Check(path, filesystem.AccessWrite)
		if err != nil || got.Verdict != want {
			t.Errorf("%s: got %s, %v, want %s", path, got.Verdict, err, want)
		}
	}
}

func TestNewGuardNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, dir := range []string{file, filepath.Join(file, "x"), filepath.Join(t.TempDir(), "missing")} {
		if _, err := filesystem.NewGuard(dir, filesystem.Options{}); err == nil {
			t.Errorf("%s was taken for a directory", dir)
		}
	}
}

func TestGuardWorksThroughALinkedWorkingDirectory(t *testing.T) {
	p := newPlace(t)
	alias := filepath.Join(p.home, "alias")
	link(t, p.project, alias)
	g, err := filesystem.NewGuard(alias, filesystem.Options{Home: p.home})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"x", alias + "/x", p.project + "/x"} {
		got, err := g.Check(path, filesystem.AccessRead)
		if err != nil || got.Path != filepath.Join(p.project, "x") || got.Verdict != filesystem.VerdictAllow {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
}

func TestDisplayIsShort(t *testing.T) {
	p := newPlace(t)
	for path, want := range map[string]string{
		p.project:               ".",
		p.project + "/sub/x":    "sub/x",
		p.home:                  "~",
		p.home + "/other":       "~/other",
		p.home + "work/x":       p.home + "work/x",
		"/etc/passwd":           "/etc/passwd",
		p.project + "-old/x.go": "~/project-old/x.go",
	} {
		if got := p.guard.Display(path); got != want {
			t.Errorf("Display(%s) = %s, want %s", path, got, want)
		}
	}
}
