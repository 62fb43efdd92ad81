package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/config"
)

func TestLoadRefusesWhatItDoesNotKnowAndSaysWhere(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"misspelt setting", "{\n  \"provider\": \"openai\",\n  \"modell\": \"x\"\n}", []string{"config.json: line 3:", "no setting modell", "did you mean model?"}},
		{"misspelt inside a provider", "{\"providers\": {\n\"x\": {\n\"base_ulr\": \"http://h/v1\"}}}", []string{"line 3:", "providers.x.base_ulr", "did you mean base_url?"}},
		{"misspelt inside a model", `{"providers":{"x":{"models":{"m":{"contextwindow":1}}}}}`, []string{"providers.x.models.m.contextwindow", "did you mean context_window?"}},
		{"nothing near", `{"telemetry": true}`, []string{"no setting telemetry", "there are max_output_tokens, model"}},
		{"another case", `{"Provider": "openai"}`, []string{"did you mean provider?"}},
		{"twice", "{\"model\": \"a\",\n\"model\": \"b\"}", []string{"line 2:", "model stands there twice"}},
		{"wrong kind", "{\n\"model\": 5}", []string{"line 2:", "model must be a string in quotes"}},
		{"no whole number", `{"max_output_tokens": 1.5}`, []string{"max_output_tokens must be a whole number"}},
		{"negative", `{"retry":{"max_retries": -1}}`, []string{"retry.max_retries must be a whole number that is not negative"}},
		{"object for a list", `{"permissions":{"allow": {}}}`, []string{"permissions.allow must be a list"}},
		{"number in a list", `{"permissions":{"allow": ["bash", 3]}}`, []string{"permissions.allow[1] must be a string"}},
		{"list for an object", `{"providers": []}`, []string{"providers must be an object"}},
		{"no time span", "{\"retry\":{\n\"max_delay\": 30}}", []string{"line 2:", `retry.max_delay must be a time span such as "30s"`}},
		{"no JSON", "{\n  \"model\": \"a\"\n  \"provider\": \"b\"\n}", []string{"line 3:", "no JSON"}},
		{"show thinking", `{"show_thinking": "loud"}`, []string{`"loud" is not one of shown, dimmed and hidden`}},
		{"two keys", `{"providers":{"x":{"api_key":"a","api_key_helper":"b"}}}`, []string{"providers.x has api_key and api_key_helper: keep one"}},
		{"small window", `{"providers":{"x":{"models":{"m":{"context_window":8192}}}}}`, []string{"providers.x.models.m.context_window", "8,192", "at least 16,384"}},
		{"split header", `{"providers":{"x":{"headers":{"A":"1\r\nB: 2"}}}}`, []string{`"A" is no header`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(write(t, tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestLoadTakesNoFileAndAnEmptyOneForNoSettings(t *testing.T) {
	t.Parallel()
	for _, path := range []string{filepath.Join(t.TempDir(), "none.json"), write(t, ""), write(t, " \n"), write(t, "{}"), write(t, `{"model": null}`)} {
		l, err := config.Load(path)
		if err != nil || len(l.Warnings) > 0 {
			t.Fatalf("Load = %v, %v", l.Warnings, err)
		}
		if diff := cmp.Diff(config.File{}, l.File); diff != "" {
			t.Error(diff)
		}
	}
}

func TestLoadWarnsAboutAFileThatOthersCanRead(t *testing.T) {
	t.Parallel()
	path := write(t, "{}")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(path)
	if err != nil || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "chmod 600") {
		t.Errorf("Load = %q, %v; want one warning that says what to do", l.Warnings, err)
	}
}

func TestUpdateKeepsWhatItDoesNotTouchAndClosesTheFileToOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "keen")
	path := filepath.Join(dir, "config.json")
	set := func(edit func(*config.File)) {
		t.Helper()
		if err := config.Update(path, edit); err != nil {
			t.Fatal(err)
		}
	}
	set(func(f *config.File) {
		never, retries := false, 0
		f.Providers = map[string]config.Provider{"x": {
			BaseURL: "http://127.0.0.1/v1", APIKeyHelper: "a < b && c", NoStreamOptions: &never,
			Models: map[string]config.Model{"m.n/o": {ContextWindow: 20000}},
		}}
		f.Retry = config.Retry{MaxRetries: &retries, MaxDelay: config.Duration(90e9)}
	})
	want := load(t, readFile(t, path))
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	set(func(f *config.File) { f.Model = "m" })

	want.Model = "m"
	if diff := cmp.Diff(want, load(t, readFile(t, path))); diff != "" {
		t.Errorf("settings changed (-want +got):\n%s", diff)
	}
	if text := readFile(t, path); !strings.Contains(text, `"a < b && c"`) || !strings.Contains(text, `"1m30s"`) || !strings.Contains(text, `"max_retries": 0`) {
		t.Errorf("the file is not written as people would:\n%s", text)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, dir: 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode of %s is %v (%v), want %v", name, info.Mode().Perm(), err, mode)
		}
	}
}

func TestUpdateRefusesToStoreOrReplaceWhatIsWrong(t *testing.T) {
	t.Parallel()
	broken := write(t, `{"modell": "x"}`)
	if err := config.Update(broken, func(f *config.File) { f.Model = "y" }); err == nil {
		t.Error("a file that cannot be read was replaced")
	}
	if got := readFile(t, broken); got != `{"modell": "x"}` {
		t.Errorf("the file was changed to %s", got)
	}
	if err := config.Update(write(t, "{}"), func(f *config.File) { f.ShowThinking = "loud" }); err == nil {
		t.Error("a wrong value was stored")
	}
}

func TestUpdateWritesThroughASymlink(t *testing.T) {
	t.Parallel()
	target := write(t, "{}")
	link := filepath.Join(t.TempDir(), "config.json")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := config.Update(link, func(f *config.File) { f.Model = "m" }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readFile(t, target), `"m"`) {
		t.Error("the file that the link leads to was not changed")
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}

func TestDefaultPathsLieInTheUsersDirectories(t *testing.T) {
	t.Parallel()
	if got := config.DefaultPath(); !strings.HasSuffix(got, filepath.Join("keen", "config.json")) || !filepath.IsAbs(got) {
		t.Errorf("DefaultPath = %s", got)
	}
	if got := config.DefaultProjectRoot(); !strings.HasSuffix(got, filepath.Join("keen", "projects")) || !filepath.IsAbs(got) {
		t.Errorf("DefaultProjectRoot = %s", got)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
