//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"keen/internal/session"
	"keen/internal/simulator"
)

// TestInterruptedRunStoresAndPrintsItsWork interrupts a run while the model is
// in the middle of a sentence.
func TestInterruptedRunStoresAndPrintsItsWork(t *testing.T) {
	keen, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	link := filepath.Join(home, "keen")
	if err := os.Symlink(keen, link); err != nil {
		t.Fatal(err)
	}
	started := make(chan *os.Process, 1)
	reply := simulator.Text("Half an answer that never comes to its end, because the user has seen enough.")
	reply.ChunkBytes = 8
	reply.Fault = simulator.Stall(5, nil, func() { _ = (<-started).Signal(syscall.SIGINT) })
	server, err := simulator.New(simulator.Options{Script: simulator.NewSequence(
		simulator.Reply{Text: "First I look.", Calls: []simulator.Call{{Name: "glob", Input: `{"pattern":"*"}`}}}, reply)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	run := exec.CommandContext(t.Context(), link, "run", "--provider", "openai-compatible", "--model", "m", "--base-url", server.URL()+"/v1", "--context-window", "32768", "--cwd", home, "look")
	run.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home + "/state", "XDG_CONFIG_HOME=" + home + "/config", "XDG_CACHE_HOME=" + home + "/cache"}
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	started <- run.Process
	_ = run.Wait() // The exit code says more.
	if code := run.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, stderr.String())
	}
	if got := stdout.String(); !strings.HasPrefix(got, "First I look.\n\nHalf an ") {
		t.Errorf("stdout is %q", got)
	}
	if !strings.Contains(stderr.String(), "keen run --session") {
		t.Errorf("stderr does not say how to go on: %s", stderr.String())
	}
	files, err := filepath.Glob(filepath.Join(home, "state", "keen", "sessions", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d session files: %v", len(files), err)
	}
	events, _, err := session.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	if last.Outcome != session.OutcomeInterrupted {
		t.Errorf("the session ends with %q", last.Outcome)
	}
	if history := session.BuildConversation(events); len(history) != 3 || !strings.HasPrefix(history[2].Content, "Half an ") {
		t.Errorf("the stored history is %+v", history)
	}
}
