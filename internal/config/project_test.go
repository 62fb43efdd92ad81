package config_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/config"
)

func TestProjectKeepsPermissionsOutsideTheRepository(t *testing.T) {
	t.Parallel()
	root, repo, other := t.TempDir(), t.TempDir(), t.TempDir()
	// A repository that grants itself something.
	if err := os.MkdirAll(filepath.Join(repo, ".keen"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "permissions.json"} {
		if err := os.WriteFile(filepath.Join(repo, ".keen", name), []byte(`{"permissions":{"allow":["bash"]},"allow":["bash"]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(repo, link); err != nil {
		t.Fatal(err)
	}

	if got := permissions(t, root, repo); !cmp.Equal(got, config.Permissions{}) {
		t.Errorf("a new project allows %v", got)
	}
	for _, more := range []config.Permissions{{AllowPatterns: []string{"go test *"}}, {Allow: []string{"edit_file"}, AllowPatterns: []string{"go test *", "make"}}} {
		if err := project(t, root, repo).Allow(more); err != nil {
			t.Fatal(err)
		}
	}
	want := config.Permissions{Allow: []string{"edit_file"}, AllowPatterns: []string{"go test *", "make"}}
	if diff := cmp.Diff(want, permissions(t, root, link)); diff != "" {
		t.Errorf("permissions through a link (-want +got):\n%s", diff)
	}
	if got := permissions(t, root, other); !cmp.Equal(got, config.Permissions{}) {
		t.Errorf("another project allows %v", got)
	}
	files, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

func TestProjectTakesGrantsFromSeveralGoroutines(t *testing.T) {
	t.Parallel()
	p := project(t, t.TempDir(), t.TempDir())
	var wg sync.WaitGroup
	for _, pattern := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			if err := p.Allow(config.Permissions{AllowPatterns: []string{pattern}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := p.Permissions(); err != nil || len(got.AllowPatterns) != 4 {
		t.Errorf("Permissions = %v, %v; want all four", got, err)
	}
}

func TestProjectSaysWhichFileIsBroken(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	if err := project(t, root, dir).Allow(config.Permissions{Allow: []string{"bash"}}); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(root, "*"))
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := project(t, root, dir).Permissions(); err == nil {
		t.Error("a broken file was taken for no permissions")
	}
	if err := project(t, root, dir).Allow(config.Permissions{Allow: []string{"grep"}}); err == nil {
		t.Error("a broken file was replaced")
	}
	if _, err := config.NewProject(root, filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that does not exist is a project")
	}
}

func project(t *testing.T, root, dir string) *config.Project {
	t.Helper()
	p, err := config.NewProject(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func permissions(t *testing.T, root, dir string) config.Permissions {
	t.Helper()
	got, err := project(t, root, dir).Permissions()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnApprovalHoldsForExactlyWhatWasApproved(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	p := project(t, root, dir)
	a := config.Approval{Kind: "mcp", Name: "files", Content: []byte("npx server")}
	approved := func(p *config.Project, a config.Approval) bool {
		t.Helper()
		ok, err := p.Approved(a)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if approved(p, a) {
		t.Error("approved before anybody said so")
	}
	if err := p.Approve(a); err != nil {
		t.Fatal(err)
	}
	changed, renamed, kind := a, a, a
	changed.Content = []byte("npx server; rm -rf ~")
	renamed.Name = "other"
	kind.Kind = "hook"
	for name, other := range map[string]config.Approval{"another content": changed, "another name": renamed, "another kind": kind} {
		if approved(p, other) {
			t.Errorf("%s is approved too", name)
		}
	}
	if !approved(project(t, root, dir), a) {
		t.Error("the approval is forgotten after a restart")
	}
	if approved(project(t, root, t.TempDir()), a) {
		t.Error("the approval holds in another directory")
	}
	if err := p.Revoke("mcp", "files"); err != nil {
		t.Fatal(err)
	}
	if approved(p, a) {
		t.Error("approved after it was taken back")
	}
}
