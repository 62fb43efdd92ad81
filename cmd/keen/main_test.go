package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"keen/internal/cli/cmd"
	"keen/internal/simulator"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"keen": func() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestCommands runs the command-line tests in testdata. Each script has a home
// of its own, and the command `simulate NAME` starts a scripted model, whose
// address it puts into BASE_URL.
func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"config", "state", "cache", "work"} {
				if err := os.MkdirAll(filepath.Join(e.WorkDir, name), 0o700); err != nil {
					return err
				}
			}
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			e.Setenv("KEY", "test-key")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"simulate":   simulate,
			"session-is": sessionIs,
			"json-is":    jsonIs,
		},
	})
}

// scripts are the models that `simulate` knows.
var scripts = map[string]func() simulator.Options{
	"answer": func() simulator.Options {
		return simulator.Options{Script: always(simulator.Text("The answer is 42."))}
	},
	"read": func() simulator.Options {
		return simulator.Options{Script: simulator.NewSequence(
			call("I look at the file.", "read_file", map[string]any{"path": "hello.txt"}), simulator.Text("It says hello."))}
	},
	"write": func() simulator.Options {
		return simulator.Options{Script: simulator.NewSequence(
			call("", "write_file", map[string]any{"path": "new.txt", "content": "made by keen\n"}), simulator.Text("Written."))}
	},
	"bash": func() simulator.Options {
		return simulator.Options{Script: simulator.NewSequence(
			call("", "bash", map[string]any{"command": "touch made-by-bash"}), simulator.Text("Ran."))}
	},
	"outside": func() simulator.Options {
		return simulator.Options{Script: simulator.NewSequence(
			call("", "write_file", map[string]any{"path": "../outside.txt", "content": "x"}), simulator.Text("Tried."))}
	},
	"marathon": func() simulator.Options {
		return simulator.Options{Window: 32768, Script: simulator.NewMarathon(simulator.MarathonOptions{
			Steps: 40, Tool: "read_file", Final: "All read.", Say: func(step int) string { return fmt.Sprintf("Step %d.", step) },
			Input: func(int, int) string { return `{"path":"big.txt"}` },
		})}
	},
	"overflow": func() simulator.Options {
		return simulator.Options{Script: simulator.Inject(always(simulator.Text("never")), func(*simulator.Request) *simulator.Fault { return simulator.Overflow() })}
	},
	"unauthorized": func() simulator.Options {
		return simulator.Options{Key: "another-key", Script: always(simulator.Text("never"))}
	},
}

func always(r simulator.Reply) simulator.Script {
	return simulator.ScriptFunc(func(*simulator.Request) simulator.Reply { return r })
}

func call(text, tool string, input map[string]any) simulator.Reply {
	encoded, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return simulator.Reply{Text: text, Calls: []simulator.Call{{Name: tool, Input: string(encoded)}}}
}

// simulate starts a scripted model for the rest of a script.
func simulate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || scripts[args[0]] == nil {
		ts.Fatalf("usage: simulate NAME")
	}
	server, err := simulator.New(scripts[args[0]]())
	ts.Check(err)
	var once sync.Once
	ts.Defer(func() { once.Do(server.Close) })
	ts.Setenv("BASE_URL", server.URL()+"/v1")
}

// sessionIs checks that the only session file holds, or with ! does not hold,
// a text.
func sessionIs(ts *testscript.TestScript, neg bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "keen", "sessions", "*", "*.jsonl"))
	ts.Check(err)
	if len(files) != 1 || len(args) != 1 {
		ts.Fatalf("%d session files, %d arguments", len(files), len(args))
	}
	text, err := os.ReadFile(files[0])
	ts.Check(err)
	if strings.Contains(string(text), args[0]) == neg {
		ts.Fatalf("the session holds %q: %v", args[0], !neg)
	}
}

// jsonIs checks a field of the JSON document on stdout of the last command.
func jsonIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json-is FIELD VALUE")
	}
	var doc map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc))
	if got := fmt.Sprint(doc[args[0]]); got != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}
