// Package keen_test holds the rules that no single package can test.
package keen_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists, for each package of the project, the packages of the
// project it may import. Dependencies point one way: cmd -> cli -> {llm,
// session, tools, config} -> leaves. A package that is missing here may import
// none. Tests of a package may import the simulator and the recorded errors as
// well, and those of the program everything.
var mayImport = map[string][]string{
	"cmd/keen":                   {"internal/cli/cmd"},
	"internal/cli/cmd":           {"internal/cli/repl", "internal/cli/repl/appstate", "internal/cli/repl/render", "internal/simulator", "internal/llm", "internal/llm/apierror", "internal/session", "internal/tools", "internal/permission", "internal/filesystem", "internal/config", "internal/providers", "internal/auth"},
	"internal/cli/repl":          {"internal/cli/repl/appstate", "internal/cli/repl/render", "internal/cli/repl/widgets", "internal/llm", "internal/llm/apierror", "internal/llm/token", "internal/session", "internal/tools", "internal/permission", "internal/filesystem", "internal/config", "internal/providers", "internal/auth"},
	"internal/cli/repl/appstate": {"internal/llm", "internal/session", "internal/tools"},
	"internal/cli/repl/render":   {"internal/llm", "internal/tools", "internal/session"},
	"internal/cli/repl/widgets":  {"internal/cli/repl/render"},
	"internal/session":           {"internal/llm", "internal/tools"},
	"internal/llm":               {"internal/llm/apierror", "internal/llm/compaction", "internal/llm/token", "internal/tools"},
	"internal/llm/compaction":    {"internal/llm/token", "internal/tools"},
	"internal/tools":             {"internal/permission", "internal/filesystem"},
	"internal/permission":        {"internal/filesystem"},
	"internal/config":            {"internal/providers"},
	"internal/auth":              {},
}

// forTests are packages that tests of every package may import.
var forTests = []string{"internal/simulator", "internal/llm/apierror/recorded"}

func TestDependenciesPointOneWay(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		seen++
		checkImports(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d Go files were checked", seen)
	}
}

func checkImports(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("read imports: %v", err)
		return
	}
	from := filepath.ToSlash(filepath.Dir(path))
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		to, ours := strings.CutPrefix(imported, "keen/")
		if !ours || to == from {
			continue
		}
		if strings.HasSuffix(path, "_test.go") && (slices.Contains(forTests, to) || from == "cmd/keen") {
			continue
		}
		if !allowed(from, to) {
			t.Errorf("%s imports %s, which the layers forbid", path, to)
		}
	}
}

func allowed(from, to string) bool {
	for _, p := range mayImport[from] {
		if p == to {
			return true
		}
	}
	return false
}
