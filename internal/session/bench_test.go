package session_test

import (
	"fmt"
	"strings"
	"testing"

	"keen/internal/session"
)

// BenchmarkAppend shows that the cost of an append does not grow with the
// file.
func BenchmarkAppend(b *testing.B) {
	for _, megabytes := range []int{0, 10, 100} {
		b.Run(fmt.Sprintf("file=%dMB", megabytes), func(b *testing.B) {
			l := create(b, newStore(b))
			for range megabytes {
				appendEvents(b, l, turn(session.OutcomeDone, step(strings.Repeat("x", 1<<20))))
			}
			batch := []session.Event{turn(session.OutcomeCheckpoint, step("a", readCall(1, ""))), automaticCompaction("sum", "task")}
			b.ResetTimer()
			for b.Loop() {
				appendEvents(b, l, batch...)
			}
		})
	}
}

// BenchmarkOpen shows that neither does the cost of opening one.
func BenchmarkOpen(b *testing.B) {
	for _, megabytes := range []int{0, 100} {
		b.Run(fmt.Sprintf("file=%dMB", megabytes), func(b *testing.B) {
			s := newStore(b)
			l := create(b, s)
			for range megabytes {
				appendEvents(b, l, turn(session.OutcomeDone, step(strings.Repeat("x", 1<<20))))
			}
			closeLog(b, l)
			for b.Loop() {
				again, err := s.Open(l.ID())
				if err != nil {
					b.Fatal(err)
				}
				closeLog(b, again)
			}
		})
	}
}

func BenchmarkList2000Sessions(b *testing.B) {
	s := newStore(b)
	for range 2000 {
		l, err := s.Create(session.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		appendEvents(b, l, user("do something useful"), turn(session.OutcomeDone, step(strings.Repeat("answer ", 10_000))))
		closeLog(b, l)
	}
	for b.Loop() {
		infos, err := s.List()
		if err != nil || len(infos) != 2000 {
			b.Fatal(len(infos), err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	l := create(b, newStore(b))
	for range 200 {
		appendEvents(b, l, user("do"), turn(session.OutcomeDone, step(strings.Repeat("answer ", 1000), readCall(3, ""))))
	}
	b.SetBytes(int64(len(readFile(b, l.Path()))))
	for b.Loop() {
		load(b, l.Path())
	}
}
