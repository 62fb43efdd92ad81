package tools_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"keen/internal/permission"
	"keen/internal/tools"
)

// soon is far more than ending a command takes, and far less than the commands
// of these tests would run.
const soon = 5 * time.Second

func TestBashReturnsWhatWasPrinted(t *testing.T) {
	d := newDesk(t, "bash")
	for _, c := range []struct {
		name, command, output, summary string
		status                         tools.Status
		exit                           int
	}{
		{"output", "echo a; echo b", "a\nb\n", "2 lines", tools.StatusSuccess, 0},
		{"errors in their place", "echo a; echo b >&2; echo c", "a\nb\nc\n", "3 lines", tools.StatusSuccess, 0},
		{"no line feed at the end", "printf x", "x", "1 line", tools.StatusSuccess, 0},
		{"nothing", "true", "(no output)", "no output", tools.StatusSuccess, 0},
		{"a failure keeps its output", "echo broken; exit 3", "broken\n\n[Exit code 3.]", "exit 3", tools.StatusError, 3},
		{"a failure without any", "false", "(no output)\n\n[Exit code 1.]", "exit 1", tools.StatusError, 1},
		{"standard input is empty", "cat; echo end", "end\n", "1 line", tools.StatusSuccess, 0},
		{"bash itself", "x=(1 2 3); echo ${#x[@]}", "3\n", "1 line", tools.StatusSuccess, 0},
		{"invalid text", `printf 'caf\xe9 \x00!'`, "caf\uFFFD \uFFFD!", "1 line", tools.StatusSuccess, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := d.run("bash", args{"command": c.command, "description": "test"})
			if r.Output != c.output || r.Status != c.status || r.Display.Summary != c.summary {
				t.Errorf("got %q, %s, %q", r.Output, r.Status, r.Display.Summary)
			}
			if r.ExitCode == nil || *r.ExitCode != c.exit {
				t.Errorf("exit code %v, want %d", r.ExitCode, c.exit)
			}
		})
	}
	r := d.run("bash", args{"command": "pwd"})
	if r.Output != d.dir+"\n" {
		t.Errorf("runs in %q", r.Output)
	}
	r = d.run("bash", args{"command": "kill -9 $$"})
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "ended by a signal")
	if r.ExitCode != nil {
		t.Errorf("exit code %d", *r.ExitCode)
	}
}

func TestBashAsksAsTheCommandIsClassified(t *testing.T) {
	d := newDesk(t)
	wantStatus(t, d.run("bash", args{"command": "ls | wc -l"}), tools.StatusSuccess)
	r := d.run("bash", args{"command": "make  all\n"})
	wantStatus(t, r, tools.StatusDenied)
	wantIn(t, r, "runs make")
	q := d.asked.last()
	if q.Action != "Run make all" || q.Command != "make  all\n" || q.Pattern != "make all *" || !q.Write || q.Outside || q.Dangerous {
		t.Errorf("asked %+v", q)
	}
	wantStatus(t, d.run("bash", args{"command": "rm -rf x"}), tools.StatusDenied)
	if q := d.asked.last(); !q.Dangerous {
		t.Errorf("asked %+v", q)
	}
	d = newDesk(t, "bash")
	wantStatus(t, d.run("bash", args{"command": "echo x > /etc/keen-test"}), tools.StatusDenied)
	if got := len(d.asked.policy.Denied()); got != 0 {
		t.Errorf("%d requests are remembered that no flag can allow", got)
	}
}

// pidFrom waits until a command has reported the number of a process.
func pidFrom(t *testing.T, reports <-chan string) int {
	t.Helper()
	number := regexp.MustCompile(`pid=([0-9]+)`)
	seen := ""
	for {
		select {
		case text := <-reports:
			seen += text
			if m := number.FindStringSubmatch(seen); m != nil {
				pid, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		case <-time.After(soon):
			t.Fatalf("no process was reported: %q", seen)
		}
	}
}

// ended reports whether a process is gone, or only waits for its parent to
// notice.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return runtime.GOOS == "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

func wantEnded(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(soon); !ended(pid); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestBashCancelEndsTheWholeGroup(t *testing.T) {
	for name, command := range map[string]string{
		"a child in front":       `sleep 60 & echo pid=$!; wait; echo x`,
		"the next command":       `echo pid=$$; sleep 60; echo x`,
		"a child in a pipe":      `(echo pid=$BASHPID; exec sleep 60) | cat; echo x`,
		"a child that refuses":   `bash -c 'trap "" TERM; echo pid=$$; while :; do sleep 1; done'; echo x`,
		"a shell that refuses":   `trap "" TERM; echo pid=$$; sleep 60; sleep 60; echo x`,
		"a silent grandchild":    `bash -c 'sleep 60 >/dev/null 2>&1 & echo pid=$!; wait' ; echo x`,
		"a child without output": `sleep 60 >/dev/null 2>&1 & echo pid=$!; sleep 60`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "bash")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reports := make(chan string, 100)
			done := make(chan tools.Result, 1)
			go func() {
				done <- d.runWith(ctx, "bash", args{"command": command}, func(p tools.Progress) { reports <- p.Text })
			}()
			pid := pidFrom(t, reports)
			cancel()
			select {
			case r := <-done:
				wantStatus(t, r, tools.StatusCancelled)
				wantIn(t, r, "pid=", "interrupted")
			case <-time.After(soon):
				t.Fatal("does not return")
			}
			wantEnded(t, pid)
		})
	}
}

func TestBashDoesNotWaitForWhatRunsInTheBackground(t *testing.T) {
	for name, command := range map[string]string{
		"that holds the output": `sleep 60 & echo pid=$!; echo started`,
		"that is silent":        `sleep 60 >/dev/null 2>&1 & echo pid=$!; echo started`,
		"that refuses to end":   `bash -c 'trap "" TERM; while :; do sleep 1; done' & echo pid=$!; echo started`,
		"under nohup":           `nohup sleep 60 & echo pid=$!; echo started`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "bash")
			reports := make(chan string, 100)
			start := time.Now()
			r := d.runWith(t.Context(), "bash", args{"command": command}, func(p tools.Progress) { reports <- p.Text })
			if took := time.Since(start); took > soon {
				t.Errorf("took %v", took)
			}
			wantStatus(t, r, tools.StatusSuccess)
			wantIn(t, r, "started\n", "were stopped")
			wantEnded(t, pidFrom(t, reports))
		})
	}
}

func TestBashTimeoutKeepsTheOutput(t *testing.T) {
	d := newDesk(t, "bash")
	start := time.Now()
	r := d.run("bash", args{"command": "echo before; sleep 60; echo after", "timeout_ms": 300})
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "before\n", "stopped after 300ms", "timeout_ms")
	if strings.Contains(r.Output, "after\n") || r.ExitCode != nil || r.Display.Summary != "stopped after 300ms" {
		t.Errorf("got %+v", r)
	}
}

// spilledTo returns the file that a result names.
func spilledTo(t *testing.T, r tools.Result) string {
	t.Helper()
	m := regexp.MustCompile(`All of it is in (\S+):`).FindStringSubmatch(r.Output)
	if m == nil {
		t.Fatalf("the result names no file:\n%s", r.Output)
	}
	return m[1]
}

func TestBashSpillsLargeOutput(t *testing.T) {
	d := newDesk(t, "bash")
	r := d.run("bash", args{"command": "seq 1 100000; echo error: the end >&2; exit 1"})
	wantStatus(t, r, tools.StatusError)
	wantIn(t, r, "1\n2\n3\n", "\n100000\nerror: the end\n", "bytes left out of 588910 (100001 lines)", "[Exit code 1.]")
	if len(r.Output) > 17<<10 {
		t.Errorf("the result has %d bytes", len(r.Output))
	}
	file := spilledTo(t, r)
	info, err := os.Stat(file)
	if err != nil || info.Size() != 588910 || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if info, err := os.Stat(d.spill); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	// The model can read and search it, without a question.
	d.asked.policy = permission.NewPolicy(permission.PolicyOptions{})
	r = d.run("read_file", args{"path": file, "offset": 50_000, "limit": 2})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "50000\t50000\n50001\t50001\n", "of 100001")
	r = d.run("grep", args{"pattern": "^error", "path": file})
	wantStatus(t, r, tools.StatusSuccess)
	wantIn(t, r, "100001:error: the end")
	wantStatus(t, d.run("bash", args{"command": "tail -n 1 " + file}), tools.StatusSuccess)
}

func TestBashOutputJustBelowTheLimitIsWhole(t *testing.T) {
	d := newDesk(t, "bash")
	for _, n := range []int{16 << 10, 16<<10 + 1} {
		r := d.run("bash", args{"command": "head -c " + strconv.Itoa(n) + " /dev/zero | tr '\\0' x"})
		if whole := r.Output == strings.Repeat("x", n); whole != (n == 16<<10) {
			t.Errorf("%d bytes: whole=%v", n, whole)
		}
	}
	if entries, err := os.ReadDir(d.spill); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestBashOfTwentyMegabytesCostsLittleMemory(t *testing.T) {
	d := newDesk(t, "bash")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var mu sync.Mutex
	reported, largest := 0, 0
	r := d.runWith(t.Context(), "bash", args{"command": "yes 0123456789abcdef | head -c 20971520"}, func(p tools.Progress) {
		mu.Lock()
		defer mu.Unlock()
		reported += len(p.Text)
		largest = max(largest, len(p.Text))
	})
	runtime.ReadMemStats(&after)
	wantStatus(t, r, tools.StatusSuccess)
	if info, err := os.Stat(spilledTo(t, r)); err != nil || info.Size() != 20<<20 {
		t.Errorf("%v, %v", info, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 12<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	if reported == 0 || largest > 8<<10 {
		t.Errorf("%d bytes reported, %d at once", reported, largest)
	}
}

func TestBashBinaryOutputSurvives(t *testing.T) {
	d := newDesk(t, "bash")
	r := d.run("bash", args{"command": "head -c 300000 /dev/urandom"})
	wantStatus(t, r, tools.StatusSuccess)
	if !utf8.ValidString(r.Output) || strings.ContainsRune(r.Output, 0) {
		t.Error("the result is no text")
	}
	r = d.run("read_file", args{"path": spilledTo(t, r), "limit": 3})
	wantStatus(t, r, tools.StatusSuccess)
	if !utf8.ValidString(r.Output) || strings.ContainsRune(r.Output, 0) {
		t.Error("the file's text is no text")
	}
}

func TestBashReportsWhileItRuns(t *testing.T) {
	d := newDesk(t, "bash")
	// The command goes on only when its first output was seen.
	reports := make(chan string, 100)
	done := make(chan tools.Result, 1)
	go func() {
		done <- d.runWith(t.Context(), "bash", args{"command": `printf 'pid=7 é'; printf '\xc3'; until [ -e go ]; do sleep 0.01; done; printf '\xa9\n'`}, func(p tools.Progress) { reports <- p.Text })
	}()
	pidFrom(t, reports)
	d.write("go", "")
	r := <-done
	close(reports)
	if r.Output != "pid=7 éé\n" {
		t.Errorf("got %q", r.Output)
	}
	for text := range reports {
		if strings.ContainsRune(text, utf8.RuneError) {
			t.Errorf("a character was cut: %q", text)
		}
	}
}

func TestBashWithoutASpillDirectorySaysWhatIsLost(t *testing.T) {
	r := tools.NewRegistry(tools.Standard(tools.Options{Dir: t.TempDir()})...)
	got := r.Run(t.Context(), tools.Call{Name: "bash", Input: []byte(`{"command":"seq 1 20000"}`)}, nil)
	wantStatus(t, got, tools.StatusSuccess)
	wantIn(t, got, "1\n2\n", "The rest is lost", "\n20000\n")
}
