package keen_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCoveragePageNamesTestsThatExist keeps docs/specification-coverage.md
// true: every test it names exists. A name that ends with "…" stands for all
// tests that begin so.
func TestCoveragePageNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("docs/specification-coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Benchmark)[^`/]+)").FindAllStringSubmatch(string(page), -1)
	if len(named) < 100 {
		t.Fatalf("the page names only %d tests", len(named))
	}
	for _, n := range named {
		name, prefix := strings.CutSuffix(n[1], "…")
		if !prefix {
			name += "("
		}
		if !strings.Contains(sources.String(), "func "+name) {
			t.Errorf("the page names %s, which does not exist", n[1])
		}
	}
}
