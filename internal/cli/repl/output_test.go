package repl

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writes keeps what was written, write by write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

const aPrint = "\r\x1b[3B\n\n\x1b[9A\x1b[2Lone\x1b[K\r\ntwo\x1b[K\r\n"

func TestAPrintIsWrittenTogetherWithItsPicture(t *testing.T) {
	for name, c := range map[string]struct {
		in   []string
		want []string
	}{
		"a picture alone":        {in: []string{"picture"}, want: []string{"picture"}},
		"a print and a picture":  {in: []string{aPrint, "picture"}, want: []string{aPrint + "picture"}},
		"two prints":             {in: []string{aPrint, aPrint, "picture", "next"}, want: []string{aPrint + aPrint + "picture", "next"}},
		"an update as a whole":   {in: []string{aPrint, syncBegin + "picture\x1b[?2026l"}, want: []string{syncBegin + aPrint + "picture\x1b[?2026l"}},
		"a print at the bottom":  {in: []string{"\r\n\x1b[A\x1b[Lone", "p"}, want: []string{"\r\n\x1b[A\x1b[Lonep"}},
		"a line break is no one": {in: []string{"\r\nx", "\r\x1b[2K", "\x1b[1;1H"}, want: []string{"\r\nx", "\r\x1b[2K", "\x1b[1;1H"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got writes
			j := newJoiner(&got)
			for _, s := range c.in {
				if n, err := j.WriteString(s); n != len(s) || err != nil {
					t.Fatal(n, err)
				}
			}
			j.flush()
			if diff := cmp.Diff(c.want, []string(got)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPrintDoesNotWaitForAPictureThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got writes
		j := newJoiner(&got)
		written := func() string {
			j.mu.Lock()
			defer j.mu.Unlock()
			return strings.Join(got, "|")
		}
		if _, err := j.WriteString(aPrint); err != nil || written() != "" {
			t.Fatal(err, written())
		}
		time.Sleep(joinTime)
		synctest.Wait()
		if written() != aPrint {
			t.Errorf("%q was written", written())
		}
	})
}
