package session_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"keen/internal/session"
)

// tornSession returns a session whose last batch is a checkpoint with its
// compaction, the bytes of its file, and where that batch starts.
func tornSession(t *testing.T, s *session.Store) (l *session.Log, data []byte, start int) {
	t.Helper()
	l = create(t, s)
	appendEvents(t, l, user("task"))
	start = len(readFile(t, l.Path()))
	appendEvents(t, l, turn(session.OutcomeCheckpoint, step("a", readCall(1, ""))), automaticCompaction("sum", "task"))
	closeLog(t, l)
	return l, readFile(t, l.Path()), start
}

func TestABatchTornAnywhereIsNotThereAtAll(t *testing.T) {
	s := newStore(t)
	l, data, start := tornSession(t, s)
	whole := load(t, l.Path())
	earlier := whole[:2]
	for cut := start; cut < len(data); cut++ {
		writeFile(t, l.Path(), data[:cut])
		checkTorn(t, s, l, earlier, cut-start)
		if t.Failed() {
			t.Fatalf("torn at byte %d of %d", cut-start, len(data)-start)
		}
	}
}

func TestATailOfZerosIsIgnoredAndCut(t *testing.T) {
	s := newStore(t)
	l, data, start := tornSession(t, s)
	earlier := load(t, l.Path())[:2]
	for _, zeros := range []int{1, 4096, 300_000} {
		for _, cut := range []int{start, start + 10, len(data) - 1} {
			writeFile(t, l.Path(), append(bytes.Clone(data[:cut]), make([]byte, zeros)...))
			checkTorn(t, s, l, earlier, cut-start+zeros)
		}
	}
}

// checkTorn checks that only earlier events load, that nothing changes before
// an append, and that an append leaves a session without a trace of the tail.
func checkTorn(t *testing.T, s *session.Store, l *session.Log, earlier []session.Event, torn int) {
	t.Helper()
	before := readFile(t, l.Path())
	events, rec, err := session.Load(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, events, earlier)
	diff(t, rec, session.Recovery{TornBytes: int64(torn)})
	if (rec.String() != "") != (torn > 0) {
		t.Errorf("%d torn bytes are described as %q", torn, rec)
	}
	again, err := s.Open(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog(t, again)
	if !bytes.Equal(readFile(t, l.Path()), before) {
		t.Error("opening changed the file")
	}
	appendEvents(t, again, user("next"))
	diff(t, load(t, l.Path()), append(slices.Clone(earlier), user("next")))
	if infos, err := s.List(); err != nil || len(infos) != 1 || infos[0].Events != len(earlier)+1 || infos[0].Turns != 2 {
		t.Errorf("listed as %+v, %v", infos, err)
	}
}

func TestDamageInTheMiddleCostsOneBatch(t *testing.T) {
	for name, damage := range map[string]string{
		"zeros":               "\x00\x00\x00\n",
		"half a line":         `{"events":[{"kind":"user_mess` + "\n",
		"a list":              "[1]\n",
		"a wrong field":       `{"events":[{"kind":"user_message","text":"lost"},{"kind":"user_message","text":7}]}` + "\n",
		"an event of no kind": `{"events":[7]}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			l := create(t, s)
			appendEvents(t, l, user("one"))
			closeLog(t, l)
			data := append(readFile(t, l.Path()), damage...)
			writeFile(t, l.Path(), data)
			appendEvents(t, open(t, s, l.ID()), user("two"))
			events, rec, err := session.Load(l.Path())
			if err != nil {
				t.Fatal(err)
			}
			diff(t, events[1:], []session.Event{user("one"), user("two")})
			diff(t, rec, session.Recovery{DamagedLines: []int{4}})
			if !strings.Contains(rec.String(), "line 4") {
				t.Errorf("described as %q", rec)
			}
			if !bytes.HasPrefix(readFile(t, l.Path()), data) {
				t.Error("the damaged line is gone")
			}
			if infos, err := s.List(); err != nil || infos[0].Turns != 2 {
				t.Errorf("listed as %+v, %v", infos, err)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	s := newStore(f)
	l := create(f, s)
	appendEvents(f, l, user("task"))
	appendEvents(f, l, turn(session.OutcomeCheckpoint, step("a", readCall(1, ""))), automaticCompaction("sum", "task"))
	closeLog(f, l)
	whole := readFile(f, l.Path())
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(whole[:len(whole)-40])
	f.Add(append(bytes.Clone(whole), make([]byte, 100)...))
	f.Add(append(bytes.Clone(whole), "{broken\n\n[1]\n{}\n"...))
	f.Add(append(bytes.Clone(whole), `{"events":[{"kind":"new","text":1,"time":"x"},{"kind":"cleared"}],"digest":{"events":3}}`+"\n"...))
	f.Add([]byte(`{"format":"keen-session","version":9}` + "\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		path := l.Path()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		events, _, err := session.Load(path)
		again, openErr := s.Open(l.ID())
		if (err == nil) != (openErr == nil) {
			t.Fatalf("loading gives %v, opening %v", err, openErr)
		}
		if err != nil {
			return
		}
		defer closeLog(t, again)
		session.BuildConversation(events)
		session.Replay(events)
		appendEvents(t, again, user("next"))
		after, _, err := session.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, after, append(events, user("next")))
		if infos, err := s.List(); err != nil || len(infos) != 1 || infos[0].Preview != "next" {
			t.Errorf("listed as %+v, %v", infos, err)
		}
	})
}
