package config_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"keen/internal/config"
	"keen/internal/providers"
)

// registry is shared, because reading the catalogue takes a while.
var registry = providers.NewRegistry()

// env is an environment.
type env map[string]string

func (e env) lookup(name string) string { return e[name] }

// inputs are the inputs of a test: flags, environment and the text of a file.
type inputs struct {
	flags    config.Flags
	env      env
	file     string
	accounts []string
	server   *providers.ServerInfo
}

func (i inputs) resolve(t *testing.T) (config.Resolved, error) {
	t.Helper()
	in := config.Inputs{
		Flags: i.flags, Env: i.env.lookup, File: load(t, i.file), Registry: registry, Accounts: i.accounts,
	}
	if i.server != nil {
		in.Probe = func(_ context.Context, r providers.ProbeRequest) (providers.ServerInfo, bool) {
			info := *i.server
			if info.Model == "" {
				info.Model = r.Model
			}
			return info, true
		}
	}
	return config.Resolve(t.Context(), in)
}

// must resolves what has no error.
func (i inputs) must(t *testing.T) config.Resolved {
	t.Helper()
	r, err := i.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func load(t *testing.T, text string) config.File {
	t.Helper()
	l, err := config.Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return l.File
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rowOf returns the value and the source of a row.
func rowOf(t *testing.T, r config.Resolved, name string) (value, source string) {
	t.Helper()
	for _, row := range r.Rows() {
		if row.Name == name {
			return row.Value, row.Source
		}
	}
	t.Fatalf("there is no row %s", name)
	return "", ""
}
