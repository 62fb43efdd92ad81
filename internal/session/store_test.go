package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"keen/internal/session"
)

func TestDefaultRootIsInTheStateDirectory(t *testing.T) {
	root := session.DefaultRoot()
	if !filepath.IsAbs(root) || !strings.HasSuffix(filepath.ToSlash(root), "/keen/sessions") {
		t.Errorf("root is %q", root)
	}
}

func TestCreateStoresWhoStartedWhatWhere(t *testing.T) {
	s := newStore(t)
	before := time.Now()
	l, err := s.Create(session.CreateOptions{KeenVersion: "1.2.3", Title: "name"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog(t, l)
	events := load(t, l.Path())
	diff(t, events, []session.Event{{
		Kind: session.KindSessionStarted, SessionID: l.ID(), Cwd: s.Cwd(), KeenVersion: "1.2.3", Title: "name",
	}})
	if at := events[0].Time; at.Before(before.Add(-time.Second)) || at.After(time.Now()) || at.Location() != time.UTC {
		t.Errorf("created at %v", at)
	}
	if first, _, _ := bytes.Cut(readFile(t, l.Path()), []byte("\n")); string(first) != `{"format":"keen-session","version":1}` {
		t.Errorf("header is %s", first)
	}
}

func TestOnlyTheUserCanReadSessions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	root := filepath.Join(t.TempDir(), "state", "sessions")
	s, err := session.NewStore(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	checked := 0
	err = filepath.WalkDir(filepath.Dir(root), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		checked++
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
		return nil
	})
	if err != nil || checked != 4 {
		t.Errorf("checked %d entries: %v", checked, err)
	}
}

func TestEveryWayIntoADirectoryLeadsToTheSameSessions(t *testing.T) {
	root, parent := t.TempDir(), t.TempDir()
	dir := filepath.Join(parent, "My Project")
	other := filepath.Join(parent, "sub", "My Project")
	link := filepath.Join(parent, "link")
	for _, d := range []string{dir, other} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Skipf("no symlinks: %v", err)
	}
	dirOf := func(cwd string) string {
		s, err := session.NewStore(root, cwd)
		if err != nil {
			t.Fatal(err)
		}
		return s.Dir()
	}
	if a, b := dirOf(dir), dirOf(link); a != b {
		t.Errorf("a symlink leads to %s, not %s", b, a)
	}
	if a, b := dirOf(dir), dirOf(other); a == b {
		t.Errorf("two directories of one name share %s", a)
	}
	if name := filepath.Base(dirOf(dir)); !strings.HasPrefix(name, "my-project-") {
		t.Errorf("the directory is called %q", name)
	}
	if name := filepath.Base(dirOf(string(filepath.Separator))); !strings.HasPrefix(name, "root-") {
		t.Errorf("the directory of the root is called %q", name)
	}
	if _, err := session.NewStore(root, filepath.Join(parent, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing working directory gives %v", err)
	}
}

func TestASecondWriterIsRefused(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	_, err := s.Open(l.ID())
	if !errors.Is(err, session.ErrLocked) {
		t.Fatalf("opening twice gives %v", err)
	}
	for _, part := range []string{l.ID(), "close it there", "fork it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if err := s.Delete(l.ID()); !errors.Is(err, session.ErrLocked) {
		t.Errorf("deleting an open session gives %v", err)
	}
	if events, _, err := s.Load(l.ID()); err != nil || len(events) != 1 {
		t.Errorf("a reader gets %d events, %v", len(events), err)
	}
	closeLog(t, l)
	open(t, s, l.ID())
}

func TestDeleteRemovesASession(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	closeLog(t, l)
	if err := s.Delete(l.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(l.ID()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("opening it gives %v", err)
	}
	if left, err := os.ReadDir(s.Dir()); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestWhatIsNoSessionIDFindsNothing(t *testing.T) {
	s := newStore(t)
	closeLog(t, create(t, s))
	writeFile(t, filepath.Join(filepath.Dir(s.Dir()), "secret.jsonl"), []byte("{}\n"))
	for _, id := range []string{"", "../secret", "..", "/etc/passwd", "x", "0000"} {
		_, openErr := s.Open(id)
		_, _, loadErr := s.Load(id)
		_, forkErr := s.Fork(session.ForkOptions{Parent: id})
		_, findErr := s.Find(id)
		for i, err := range []error{openErr, loadErr, forkErr, findErr, s.Delete(id)} {
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("id %q, function %d: %v", id, i, err)
			}
		}
	}
}

func TestFilesThatAreNoSessionAreRefused(t *testing.T) {
	tests := []struct {
		name, content string
		want          error
	}{
		{"empty", "", session.ErrNotSession},
		{"text", "hello\nworld\n", session.ErrNotSession},
		{"another format", `{"format":"other","version":1}` + "\n", session.ErrNotSession},
		{"no version", `{"format":"keen-session"}` + "\n", session.ErrNotSession},
		{"torn header", `{"format":"keen-session","version":1}`, session.ErrNotSession},
		{"newer", `{"format":"keen-session","version":2}` + "\n" + `{"events":[{"kind":"user_message","text":"x"}]}` + "\n", session.ErrNewerFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			path := filepath.Join(s.Dir(), "0a.jsonl")
			writeFile(t, path, []byte(tt.content))
			_, openErr := s.Open("0a")
			_, _, loadErr := s.Load("0a")
			_, forkErr := s.Fork(session.ForkOptions{Parent: "0a"})
			for i, err := range []error{openErr, loadErr, forkErr} {
				if !errors.Is(err, tt.want) {
					t.Errorf("function %d: %v, want %v", i, err, tt.want)
				}
			}
			if errors.Is(tt.want, session.ErrNewerFormat) && !strings.Contains(openErr.Error(), "format 2, this version reads 1; update keen") {
				t.Errorf("the error does not say what to do: %v", openErr)
			}
			if infos, err := s.List(); err != nil || len(infos) != 0 {
				t.Errorf("listed: %v, %v", infos, err)
			}
			if got := string(readFile(t, path)); got != tt.content {
				t.Errorf("the file was changed to %q", got)
			}
			if left, err := os.ReadDir(s.Dir()); err != nil || len(left) != 1 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestListShowsTheLatestFirst(t *testing.T) {
	s := newStore(t)
	if infos, err := s.List(); err != nil || len(infos) != 0 {
		t.Fatalf("without a directory: %v, %v", infos, err)
	}
	day := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 3 {
		l := create(t, s)
		said := user(fmt.Sprintf("message %d\n\x1b[31mof\tmany", i))
		said.Time = day.AddDate(0, 0, i)
		done := turn(session.OutcomeDone, step(strings.Repeat("long answer ", 10_000)))
		done.Time = said.Time.Add(time.Minute)
		appendEvents(t, l, user("first"), said)
		appendEvents(t, l, done)
		closeLog(t, l)
		ids = append(ids, l.ID())
	}
	l := open(t, s, ids[0])
	renamed := session.Event{Kind: session.KindSessionRenamed, Title: "a name", Time: day.AddDate(0, 0, 9)}
	appendEvents(t, l, renamed)
	closeLog(t, l)
	writeFile(t, filepath.Join(s.Dir(), "notes.txt"), []byte("x"))
	writeFile(t, filepath.Join(s.Dir(), "deadbeef.jsonl"), []byte("x"))

	infos, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 3 {
		t.Fatalf("%d sessions listed", len(infos))
	}
	got := infos[0]
	if got.Created.IsZero() || got.Size != int64(len(readFile(t, got.Path))) {
		t.Errorf("created %v, size %d", got.Created, got.Size)
	}
	got.Created, got.Size = time.Time{}, 0
	diff(t, got, session.Info{
		ID: ids[0], Path: l.Path(), Cwd: s.Cwd(), Title: "a name", Preview: "message 0 [31mof many",
		Updated: renamed.Time, Events: 5, Turns: 2,
	})
	if infos[1].ID != ids[2] || infos[2].ID != ids[1] {
		t.Errorf("order: %v", infos)
	}
}

func TestListSumsUpDamagedSessionsToo(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	appendEvents(t, l, user("first"))
	whole := readFile(t, l.Path())
	closeLog(t, l)
	tails := map[string]string{
		"short torn tail":  `{"events":[{"kind":"user_me`,
		"long torn tail":   `{"events":[{"text":"` + strings.Repeat("x", 10_000),
		"zeros":            strings.Repeat("\x00", 9000),
		"damaged line":     "{broken\n",
		"line of a friend": `{"events":[{"kind":"cleared","time":"2031-05-01T12:00:00Z"}]}` + "\n",
	}
	for name, tail := range tails {
		t.Run(name, func(t *testing.T) {
			writeFile(t, l.Path(), append(bytes.Clone(whole), tail...))
			infos, err := s.List()
			if err != nil || len(infos) != 1 {
				t.Fatalf("listed %v, %v", infos, err)
			}
			if got := infos[0]; got.Preview != "first" || got.Turns != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestContentCannotForgeTheSummaryOfASession(t *testing.T) {
	const forged = `],"digest":{"events":99,"turns":99,"preview":"forged","updated":"2031-05-01T12:00:00Z"}}`
	s := newStore(t)
	l := create(t, s)
	call := readCall(0, "")
	call.Input = json.RawMessage(`{"a":[` + forged)
	appendEvents(t, l, user("real "+forged), turn(session.OutcomeDone, step(forged, call)))
	infos, err := s.List()
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	if got := infos[0]; got.Turns != 1 || !strings.HasPrefix(got.Preview, "real ") {
		t.Errorf("got %+v", got)
	}
}

func TestPreviewIsShort(t *testing.T) {
	s := newStore(t)
	l := create(t, s)
	appendEvents(t, l, user(strings.Repeat("ä\"", 5000)))
	infos, err := s.List()
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	if p := infos[0].Preview; len(p) > 200 || !strings.HasPrefix(p, `ä"ä"`) || !strings.HasSuffix(p, "…") {
		t.Errorf("preview of %d bytes: %s", len(p), p)
	}
}

func TestLatestIsTheLastOneWithAMessage(t *testing.T) {
	s := newStore(t)
	if _, err := s.Latest(); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("without sessions: %v", err)
	}
	day := time.Date(2001, 5, 1, 12, 0, 0, 0, time.UTC)
	older, newer := create(t, s), create(t, s)
	for i, l := range []*session.Log{older, newer} {
		appendEvents(t, l, session.Event{Kind: session.KindUserMessage, Text: "x", Time: day.AddDate(0, 0, i)})
	}
	create(t, s) // Newest, but nothing was said in it.
	got, err := s.Latest()
	if err != nil || got.ID != newer.ID() {
		t.Errorf("latest is %s, want %s: %v", got.ID, newer.ID(), err)
	}
}

func TestFindTakesIDsAndUniquePrefixes(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"abc1", "abc12", "abd3"} {
		writeFile(t, filepath.Join(s.Dir(), id+".jsonl"), nil)
	}
	tests := []struct {
		prefix, want string
		err          error
	}{
		{prefix: "abc1", want: "abc1"},
		{prefix: "abc12", want: "abc12"},
		{prefix: "abd", want: "abd3"},
		{prefix: "ab", err: session.ErrAmbiguous},
		{prefix: "ff", err: session.ErrNotFound},
		{prefix: "", err: session.ErrNotFound},
	}
	for _, tt := range tests {
		got, err := s.Find(tt.prefix)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Find(%q) = %q, %v; want %q, %v", tt.prefix, got, err, tt.want, tt.err)
		}
	}
	if _, err := s.Find("ab"); !strings.Contains(err.Error(), "abc1, abc12, abd3") {
		t.Errorf("the error names no ids: %v", err)
	}
}

func TestForkTakesOverEventsUpToOne(t *testing.T) {
	s := newStore(t)
	parent := create(t, s)
	said, done := user("one"), turn(session.OutcomeCheckpoint, step("a", readCall(1, "")))
	compacted := automaticCompaction("sum", "one")
	appendEvents(t, parent, said)
	appendEvents(t, parent, done, compacted)
	appendEvents(t, parent, user("two"))
	before := readFile(t, parent.Path())
	all := load(t, parent.Path())
	for n := range len(all) + 1 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			fork, err := s.Fork(session.ForkOptions{Parent: parent.ID(), Events: n, KeenVersion: "2.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			defer closeLog(t, fork)
			want := []session.Event{
				{Kind: session.KindSessionStarted, SessionID: fork.ID(), Cwd: s.Cwd(), KeenVersion: "2.0.0"},
				{Kind: session.KindSessionForked, ParentID: parent.ID()},
			}
			if n == 0 {
				n = len(all)
			}
			diff(t, load(t, fork.Path()), append(want, all[:n]...))
			appendEvents(t, fork, user("other way"))
			got, err := s.Latest()
			if err != nil || got.ID != fork.ID() || got.Preview != "other way" || got.Events != n+3 {
				t.Errorf("latest is %+v, %v", got, err)
			}
		})
	}
	if _, err := s.Fork(session.ForkOptions{Parent: parent.ID(), Events: len(all) + 1}); err == nil {
		t.Error("more events than there are were taken over")
	}
	if _, err := s.Fork(session.ForkOptions{Parent: parent.ID(), Events: -1}); err == nil {
		t.Error("a negative number of events was taken over")
	}
	if !bytes.Equal(readFile(t, parent.Path()), before) {
		t.Error("the parent was changed")
	}
}

func TestForkKeepsWhatItDoesNotKnow(t *testing.T) {
	s := newStore(t)
	parent := create(t, s)
	closeLog(t, parent)
	known := `{"kind":"user_message","time":"2031-05-01T12:00:00Z","text":"x","mood":{"is":"good"}}`
	unknown := `{"kind":"from_the_future","time":"2031-05-01T12:00:00Z","text":[1,2]}`
	data := readFile(t, parent.Path())
	writeFile(t, parent.Path(), fmt.Appendf(data, "{\"events\":[%s,%s]}\n", known, unknown))
	events := load(t, parent.Path())
	diff(t, events[1:], []session.Event{user("x"), {Kind: "from_the_future"}})
	if events[2].Time.Year() != 2031 {
		t.Errorf("time of the unknown event: %v", events[2].Time)
	}
	fork, err := s.Fork(session.ForkOptions{Parent: parent.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog(t, fork)
	if data := readFile(t, fork.Path()); !bytes.Contains(data, []byte(known+","+unknown)) {
		t.Errorf("something was lost:\n%s", data)
	}
}
