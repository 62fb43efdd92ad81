package providers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"keen/internal/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStaticKeyHasNoOtherOne(t *testing.T) {
	t.Parallel()
	key := providers.StaticKey("k")
	if got, err := key.Token(t.Context(), ""); got != "k" || err != nil {
		t.Errorf("Token = %q, %v", got, err)
	}
	if _, err := key.Token(t.Context(), "k"); err == nil {
		t.Error("a refused key was given again")
	}
}

// counting is a helper that prints key-1, key-2 and so on.
func counting(t *testing.T) *providers.Helper {
	t.Helper()
	file := filepath.Join(t.TempDir(), "runs")
	return providers.NewHelper(fmt.Sprintf("echo x >> %s; echo \"  key-$(wc -l < %s | tr -d ' ')\"", file, file))
}

func token(t *testing.T, c providers.Credential, rejected string) string {
	t.Helper()
	key, err := c.Token(t.Context(), rejected)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestHelperRunsOnceAndAgainWhenItsKeyWasRefused(t *testing.T) {
	t.Parallel()
	h := counting(t)
	steps := []struct{ rejected, want string }{
		{"", "key-1"},
		{"", "key-1"},
		{"key-1", "key-2"},
		{"", "key-2"},
		{"key-1", "key-2"}, // Somebody else renewed it meanwhile.
		{"key-2", "key-3"},
	}
	for _, s := range steps {
		if got := token(t, h, s.rejected); got != s.want {
			t.Fatalf("Token(%q) = %q, want %q", s.rejected, got, s.want)
		}
	}
}

func TestHelperIsSharedByGoroutines(t *testing.T) {
	t.Parallel()
	h := counting(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := h.Token(t.Context(), ""); got != "key-1" || err != nil {
				t.Errorf("Token = %q, %v", got, err)
			}
		})
	}
	wg.Wait()
}

func TestHelperThatPrintsTheRefusedKeyAgainIsAnError(t *testing.T) {
	t.Parallel()
	h := providers.NewHelper("echo same")
	if _, err := h.Token(t.Context(), token(t, h, "")); err == nil || !strings.Contains(err.Error(), "the same one again") {
		t.Errorf("error = %v", err)
	}
}

func TestHelperErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, command, want string }{
		{"fails", "echo vault is sealed >&2; exit 3", "run api_key_helper: exit status 3: vault is sealed"},
		{"nothing", "true", "printed nothing"},
		{"blank", "echo ' '", "printed nothing"},
		{"two lines", "echo key; echo other", "more than a key"},
		{"a sentence", "echo not found", "more than a key"},
		{"a flood", "head -c 70000 /dev/zero | tr '\\0' k", "more than a key"},
		{"endless complaints", "head -c 70000 /dev/zero | tr '\\0' k >&2; exit 1", "exit status 1: kkk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, err := providers.NewHelper(tt.command).Token(t.Context(), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
				t.Errorf("Token = %q, %v; want an error that says %q", key, err, tt.want)
			}
		})
	}
}

func TestHelperEndsWithItsContextAndTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// The child keeps the fifo open for as long as it lives.
	h := providers.NewHelper(fmt.Sprintf("exec 9> %s; echo started >&9; sleep 600 & wait", fifo))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := h.Token(ctx, "")
		done <- err
	}()
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	alive := bufio.NewReader(f)
	if line, err := alive.ReadString('\n'); line != "started\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
	if _, err := alive.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("read %v, want the end of the last process", err)
	}
	if _, err := h.Token(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error after the end = %v", err)
	}
}
