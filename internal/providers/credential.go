package providers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Credential gives the secret that requests are sent with.
type Credential interface {
	// Token returns the current secret. rejected is a secret that the server
	// just refused, or empty: a credential that can be renewed returns another
	// one then, any other returns an error.
	Token(ctx context.Context, rejected string) (string, error)
}

// StaticKey is an API key that never changes. The zero value sends none.
type StaticKey string

// Token implements [Credential].
func (k StaticKey) Token(_ context.Context, rejected string) (string, error) {
	if rejected != "" {
		return "", errors.New("the server refused the API key, and there is no other one")
	}
	return string(k), nil
}

// Helper limits.
const (
	helperTimeout = 30 * time.Second
	// helperOutput bounds what is read of a helper, in bytes.
	helperOutput = 64 << 10
	// helperComplaint bounds what is repeated of a helper's error output, in
	// bytes.
	helperComplaint = 500
)

// Helper is a key that a command of the user prints. The command runs when a
// key is needed first, and once more when a server refused it. It is safe for
// use by several goroutines, which share one run.
type Helper struct {
	command string
	// turn holds one token; whoever has it owns key.
	turn chan struct{}
	key  string
}

// NewHelper returns the credential of a shell command.
func NewHelper(command string) *Helper {
	h := &Helper{command: command, turn: make(chan struct{}, 1)}
	h.turn <- struct{}{}
	return h
}

// Token implements [Credential]. The command may take 30 seconds.
func (h *Helper) Token(ctx context.Context, rejected string) (string, error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-h.turn:
	}
	defer func() { h.turn <- struct{}{} }()
	if h.key != "" && h.key != rejected {
		return h.key, nil
	}
	key, err := h.run(ctx)
	if err != nil {
		return "", err
	}
	h.key = key
	if key == rejected {
		return "", errors.New("the server refused the key that api_key_helper prints, and it prints the same one again")
	}
	return key, nil
}

// run runs the command. Its process group ends with it: a helper that waits
// for something in the background must not outlive the wait for it.
func (h *Helper) run(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	stdout, stderr := &boundedBuffer{limit: helperOutput}, &boundedBuffer{limit: helperComplaint}
	c := exec.CommandContext(limited, "sh", "-c", h.command)
	c.Stdout, c.Stderr = stdout, stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	err := c.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return "", fmt.Errorf("api_key_helper did not end within %s", helperTimeout)
	case err != nil:
		return "", fmt.Errorf("run api_key_helper: %w%s", err, stderr.complaint())
	}
	return helperKey(stdout)
}

// helperKey checks what a helper printed.
func helperKey(out *boundedBuffer) (string, error) {
	key := strings.TrimSpace(string(out.text))
	switch {
	case key == "":
		return "", errors.New("api_key_helper printed nothing: it must print the key")
	case out.cut || strings.ContainsFunc(key, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return "", errors.New("api_key_helper printed more than a key: it must print the key on one line and nothing else")
	}
	return key, nil
}

// boundedBuffer keeps the beginning of what is written to it.
type boundedBuffer struct {
	text  []byte
	limit int
	cut   bool
}

// Write implements [io.Writer]; it takes everything and keeps what fits.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.limit-len(b.text))
	b.text = append(b.text, p[:n]...)
	b.cut = b.cut || n < len(p)
	return len(p), nil
}

// complaint is what was written as the end of an error message.
func (b *boundedBuffer) complaint() string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(b.text), "?")), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}
