package config_test

import (
	"reflect"
	"strings"
	"testing"

	"keen/internal/config"
)

const docPath = "../../docs/configuration.md"

// settings returns the paths of all fields below t, as the document writes
// them.
func settings(t reflect.Type, path string) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return settings(t.Elem(), path)
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		name := "ID"
		if strings.HasSuffix(path, "models") {
			name = "NAME"
		}
		return settings(t.Elem(), path+"."+name)
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	var all []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, settings(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}

func TestDocumentHasEverySetting(t *testing.T) {
	t.Parallel()
	doc := readFile(t, docPath)
	all := settings(reflect.TypeFor[config.File](), "")
	if len(all) < 25 {
		t.Fatalf("only %d settings were found: %v", len(all), all)
	}
	for _, s := range all {
		if !strings.Contains(doc, "\n| `"+s+"` |") {
			t.Errorf("%s does not describe %s", docPath, s)
		}
	}
}

func TestDocumentHasNoSettingThatDoesNotExist(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, s := range settings(reflect.TypeFor[config.File](), "") {
		known[s] = true
	}
	_, table, _ := strings.Cut(readFile(t, docPath), "| Field |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		if !strings.HasPrefix(line, "| `") || !ok {
			continue
		}
		rows++
		if !known[name] {
			t.Errorf("the document describes %s, which does not exist", name)
		}
	}
	if rows != len(known) {
		t.Errorf("%d rows for %d settings", rows, len(known))
	}
}

func TestDocumentHasEveryProvider(t *testing.T) {
	t.Parallel()
	doc := readFile(t, docPath)
	_, table, _ := strings.Cut(doc, "| Id |")
	last := -1
	for _, p := range registry.All() {
		start := strings.Index(table, "\n| `"+p.ID+"` |")
		if start < 0 {
			t.Errorf("the document does not list %s", p.ID)
			continue
		}
		if start < last {
			t.Errorf("%s stands in another order than it is tried in", p.ID)
		}
		last = start
		line, _, _ := strings.Cut(table[start+1:], "\n")
		for _, want := range append([]string{string(p.Wire), p.DefaultModel}, p.KeyEnv...) {
			if !strings.Contains(line, want) {
				t.Errorf("the line of %s does not say %s", p.ID, want)
			}
		}
		if p.BaseURLEnv != "" && !strings.Contains(doc, p.BaseURLEnv) {
			t.Errorf("the document does not name %s", p.BaseURLEnv)
		}
	}
}

func TestExampleInTheDocumentWorks(t *testing.T) {
	t.Parallel()
	_, example, _ := strings.Cut(readFile(t, docPath), "```json\n")
	example, _, ok := strings.Cut(example, "```")
	if !ok {
		t.Fatal("there is no example")
	}
	for _, provider := range []string{"", "mistral", "bedrock", "gateway"} {
		in := inputs{flags: config.Flags{Provider: provider}, file: example, env: env{"WORK_MISTRAL_KEY": "k"}}
		if provider == "gateway" {
			in.flags.Model = "qwen3-coder"
		}
		r := in.must(t)
		if r.Credential == nil && provider != "bedrock" {
			t.Errorf("%s: there is no key", r.Provider.V)
		}
	}
}

func TestDocumentNamesTheVariablesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	doc := readFile(t, docPath)
	asked := make(map[string]bool)
	in := config.Inputs{
		Registry: registry,
		Env:      func(name string) string { asked[name] = true; return "" },
		Flags:    config.Flags{Provider: "openai-compatible", BaseURL: "http://127.0.0.1:1/v1", Model: "m"},
	}
	if _, err := config.Resolve(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	own := 0
	for name := range asked {
		if strings.HasPrefix(name, "KEEN_") {
			own++
			if !strings.Contains(doc, "\n| `"+name+"` |") {
				t.Errorf("the document does not describe %s", name)
			}
		}
	}
	if own < 8 {
		t.Errorf("only %d variables were asked for: %v", own, asked)
	}
}
