//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keen/internal/session"
	"keen/internal/simulator"
)

// TestKilledRunLosesAtMostTheStepBeingWritten kills runs with SIGKILL at
// random moments. Every session loads afterwards, and lacks at most the step
// that was being written.
func TestKilledRunLosesAtMostTheStepBeingWritten(t *testing.T) {
	kills := 200
	if testing.Short() {
		kills = 20
	}
	keen, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary acts as keen when it is called so.
	link := filepath.Join(t.TempDir(), "keen")
	if err := os.Symlink(keen, link); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	seeds := make(chan int64)
	for range 2 {
		wg.Go(func() {
			for seed := range seeds {
				killOnce(t, link, seed)
			}
		})
	}
	for seed := range int64(kills) {
		seeds <- seed
	}
	close(seeds)
	wg.Wait()
}

// killOnce starts a run, kills it at a moment that the seed decides, and looks
// at what it left.
func killOnce(t *testing.T, keen string, seed int64) {
	rng := rand.New(rand.NewSource(seed))
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Error(err)
		return
	}
	if err := os.WriteFile(filepath.Join(work, "big.txt"), []byte(strings.Repeat("a line of the file that is read again and again\n", 125)), 0o600); err != nil {
		t.Error(err)
		return
	}
	atRequest, delay := 1+rng.Intn(30), time.Duration(rng.Intn(4000))*time.Microsecond
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	requests := 0
	server, err := simulator.New(simulator.Options{
		Window: 32768,
		Script: simulator.NewMarathon(simulator.MarathonOptions{
			Steps: 100, Tool: "read_file", Final: "done", Input: func(int, int) string { return `{"path":"big.txt"}` },
			Say: func(step int) string { return fmt.Sprintf("Step %d.", step) },
		}),
		OnRecord: func(r simulator.Record) {
			if r.Request.Compaction() {
				return
			}
			if requests++; requests == atRequest {
				time.AfterFunc(delay, kill)
			}
		},
	})
	if err != nil {
		t.Error(err)
		return
	}
	run := exec.CommandContext(ctx, keen, "run", "--provider", "openai-compatible", "--model", "scripted", "--base-url", server.URL()+"/v1",
		"--context-window", "32768", "--cwd", work, "read it")
	run.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home + "/state", "XDG_CONFIG_HOME=" + home + "/config", "XDG_CACHE_HOME=" + home + "/cache"}
	output, err := run.CombinedOutput() // CommandContext kills with SIGKILL.
	server.Close()
	if ctx.Err() == nil {
		t.Errorf("seed %d: the run ended by itself: %v\n%s", seed, err, output)
		return
	}
	checkLeft(t, seed, filepath.Join(home, "state"), server.Records().Parents())
}

// checkLeft checks the session that a killed run left.
func checkLeft(t *testing.T, seed int64, state string, requests simulator.Records) {
	files, err := filepath.Glob(filepath.Join(state, "keen", "sessions", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Errorf("seed %d: %d session files: %v", seed, len(files), err)
		return
	}
	events, _, err := session.Load(files[0])
	if err != nil {
		t.Errorf("seed %d: load: %v", seed, err)
		return
	}
	steps := 0
	for _, e := range events {
		if e.Kind == session.KindAssistantTurn {
			steps += len(e.Messages)
		}
	}
	// When the server sees a request, the step before it may just be written;
	// the one before that is safe.
	if want := len(requests) - 2; steps < want {
		t.Errorf("seed %d: %d steps were stored, the server saw %d requests", seed, steps, len(requests))
	}
	if history := session.BuildConversation(events); len(history) == 0 || history[0].Role != "user" {
		t.Errorf("seed %d: the conversation is lost", seed)
	}
}
