package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"keen/internal/session"
)

// The environment of the process that TestAKilledWriterLosesOneBatch kills.
const (
	crashRoot = "KEEN_TEST_CRASH_ROOT"
	crashCwd  = "KEEN_TEST_CRASH_CWD"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(crashRoot); root != "" {
		fmt.Fprintln(os.Stderr, appendUntilKilled(root, os.Getenv(crashCwd)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendUntilKilled continues the session of the store, or starts one, and
// appends batches of two events with the same number. It prints the number
// once a batch is stored.
func appendUntilKilled(root, cwd string) error {
	s, err := session.NewStore(root, cwd)
	if err != nil {
		return err
	}
	l, number, err := continueNumbers(s)
	if err != nil {
		return err
	}
	for {
		number++
		padding := strings.Repeat("x", rand.IntN(1<<20))
		text := strconv.Itoa(number)
		checkpoint := turn(session.OutcomeCheckpoint, step(padding))
		checkpoint.Model = text
		if err := l.Append(checkpoint, user(text)); err != nil {
			return err
		}
		fmt.Println(number)
	}
}

func continueNumbers(s *session.Store) (*session.Log, int, error) {
	infos, err := s.List()
	if err != nil {
		return nil, 0, err
	}
	if len(infos) == 0 {
		l, err := s.Create(session.CreateOptions{})
		return l, 0, err
	}
	l, err := s.Open(infos[0].ID)
	return l, infos[0].Turns, err
}

func TestAKilledWriterLosesOneBatch(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const kills, sessions = 50, 25
	torn := 0
	for range sessions {
		root, cwd := t.TempDir(), t.TempDir()
		stored := 0
		for range kills / sessions {
			acknowledged := killWriter(t, exe, root, cwd)
			var wasTorn bool
			stored, wasTorn = checkKilled(t, root, cwd, max(stored, acknowledged))
			if wasTorn {
				torn++
			}
		}
	}
	t.Logf("%d of %d kills left a torn line", torn, kills)
}

// killWriter starts a writer, kills it at some moment, and returns the number
// of the last batch that was reported as stored, 0 if there was none.
func killWriter(t *testing.T, exe, root, cwd string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), crashRoot+"="+root, crashCwd+"="+cwd)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The moment is random on purpose; nothing waits for it.
	kill := time.AfterFunc(time.Duration(rand.Int64N(int64(60*time.Millisecond))), func() {
		_ = cmd.Process.Kill()
	})
	defer kill.Stop()
	last := 0
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if last, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 1 {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return last
}

// checkKilled checks what is stored after a kill: every batch up to the last
// that was reported, at most one more, each of them whole. It returns how many
// there are, and whether the file ends in a torn line.
func checkKilled(t *testing.T, root, cwd string, reported int) (int, bool) {
	t.Helper()
	s, err := session.NewStore(root, cwd)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) == 0 && reported == 0 {
		return 0, false // Killed before the session was there.
	}
	if len(infos) != 1 {
		t.Fatalf("%d sessions", len(infos))
	}
	events, rec, err := s.Load(infos[0].ID)
	if err != nil || len(rec.DamagedLines) > 0 {
		t.Fatalf("load: %v, %s", err, rec)
	}
	events = events[1:]
	batches := len(events) / 2
	if len(events)%2 != 0 || batches < reported || batches > reported+1 || infos[0].Turns != batches {
		t.Fatalf("%d events stored, %d batches reported, listed as %+v", len(events), reported, infos[0])
	}
	for i := range batches {
		if want := strconv.Itoa(i + 1); events[2*i].Model != want || events[2*i+1].Text != want {
			t.Fatalf("batch %d is %s and %s", i+1, events[2*i].Model, events[2*i+1].Text)
		}
	}
	return batches, rec.TornBytes > 0
}
