package render_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
)

// sample is a text with every kind of block.
const sample = "# Title\n\nSome **bold** and `code <T>` with [a link](https://example.com/?a=1&b=2).\nSteps:\n" +
	"1. first item with a long text that has to be wrapped somewhere\n   - nested\n2. second\n   ```go\n   func main() {\n   \tprintln(\"x\")\n   }\n   ```\n" +
	"   after the code\n3. third\n\n- [ ] open\n- [x] done\n\n> quote\n> goes on\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| long cell | 33 |\n\n" +
	"---\n\n```python\ndef f(x):\n    return \"日本語\"\n```\nend 👩‍👩‍👧 &lt;tag&gt; a & b\n\n    indented\n    code\n\n## Last\nשלום עולם\n"

func streamed(m *render.Markdown, pieces []string) []string {
	s := m.Stream()
	for _, piece := range pieces {
		s.Write(piece)
		s.Lines()
	}
	s.Close()
	settled, tail := s.Lines()
	return append(settled, tail...)
}

func cut(text string, r *rand.Rand, most int) []string {
	var pieces []string
	for text != "" {
		n := min(1+r.IntN(most), len(text))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

func TestStreamedTextLooksLikeTheWholeTextHoweverItIsCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, width := range []int{20, 80} {
		m := render.NewMarkdown(render.Dark(), width)
		want := m.Render(sample)
		for range 20 {
			if diff := cmp.Diff(want, streamed(m, cut(sample, r, 12))); diff != "" {
				t.Fatalf("width %d (-whole +streamed):\n%s", width, diff)
			}
		}
	}
}

func TestSettledLinesNeverChange(t *testing.T) {
	m := render.NewMarkdown(render.Dark(), 60)
	s := m.Stream()
	var before []string
	for _, piece := range cut(strings.Repeat(sample, 3), rand.New(rand.NewPCG(3, 4)), 40) {
		s.Write(piece)
		settled, _ := s.Lines()
		if diff := cmp.Diff(before, settled[:len(before)], cmp.Transformer("nil", func(l []string) string { return strings.Join(l, "\n") })); diff != "" {
			t.Fatalf("settled lines changed (-before +after):\n%s", diff)
		}
		before = append([]string(nil), settled...)
	}
	if len(before) == 0 {
		t.Fatal("nothing was settled before the end")
	}
}

// Each of these goes on without a blank line for a long time.
func endlessBlocks() map[string]func(int) string {
	return map[string]func(int) string{
		"one line":  func(i int) string { return fmt.Sprintf("word%d ", i) },
		"no spaces": func(i int) string { return fmt.Sprintf("word%d", i) },
		"paragraph": func(i int) string { return fmt.Sprintf("line number %d of a paragraph\n", i) },
		"bullets":   func(i int) string { return fmt.Sprintf("- item number %d\n", i) },
		"numbers":   func(i int) string { return fmt.Sprintf("%d. item\n", i+1) },
		"quote":     func(i int) string { return fmt.Sprintf("> quoted line %d\n", i) },
		"code":      func(i int) string { return map[bool]string{true: "```go\n"}[i == 0] + fmt.Sprintf("x := %d\n", i) },
		"table": func(i int) string {
			return map[bool]string{true: "| a | b |\n|--|--|\n"}[i == 0] + fmt.Sprintf("| %d | x |\n", i)
		},
		"long items": func(i int) string { return map[bool]string{true: "- item\n"}[i == 0] + "  goes on and on\n" },
	}
}

func TestBlockWithoutEndHasATailOfBoundedSize(t *testing.T) {
	for name, piece := range endlessBlocks() {
		t.Run(name, func(t *testing.T) {
			s := render.NewMarkdown(render.Dark(), 80).Stream()
			longest := 0
			for i := range 1500 {
				s.Write(piece(i))
				if i%100 == 0 {
					_, tail := s.Lines()
					longest = max(longest, len(tail))
				}
			}
			if settled, _ := s.Lines(); len(settled) == 0 {
				t.Error("nothing was settled")
			}
			if longest > 700 {
				t.Errorf("the tail has %d lines", longest)
			}
		})
	}
}

func TestNumbersGoOnAcrossTheParts(t *testing.T) {
	for _, first := range []string{"1. item %d\n", "%d. item %[1]d\n"} {
		var b strings.Builder
		for i := range 400 {
			fmt.Fprintf(&b, first, i+1)
		}
		lines := render.NewMarkdown(render.Dumb(), 80).Render(b.String())
		want := make([]string, 400)
		for i := range want {
			want[i] = fmt.Sprintf("%d. item %d", i+1, i+1)
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%q (-want +got):\n%s", first, diff)
		}
	}
}

func TestHalfOfAnEmphasisIsShownAsOne(t *testing.T) {
	s := render.NewMarkdown(render.Dark(), 40).Stream()
	s.Write("some **bo")
	_, tail := s.Lines()
	if diff := cmp.Diff([]string{"some \x1b[1mbo\x1b[m"}, tail); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHalfAFenceAndHalfACharacterAreNotShown(t *testing.T) {
	s := render.NewMarkdown(render.Dumb(), 40).Stream()
	for _, piece := range []string{"``", "`go\nx\n``"} {
		s.Write(piece)
		if _, tail := s.Lines(); strings.Contains(strings.Join(tail, "\n"), "`") {
			t.Errorf("after %q: %q", piece, tail)
		}
	}
	s.Write("`\né"[:3])
	if _, tail := s.Lines(); strings.Contains(strings.Join(tail, "\n"), "\ufffd") {
		t.Errorf("tail = %q", tail)
	}
}

func TestChunkCostsTheSameAfterALongTranscript(t *testing.T) {
	cost := func(lines int) float64 {
		s := render.NewMarkdown(render.Dark(), 100).Stream()
		s.Write(strings.Repeat("Line of the transcript.\n\n", lines))
		s.Lines()
		return testing.AllocsPerRun(20, func() {
			s.Write("word \n\nword")
			s.Lines()
		})
	}
	short, long := cost(20), cost(5000)
	if long > short*1.1 {
		t.Errorf("%v allocations after 20 lines, %v after 5000", short, long)
	}
}

// benchmarkChunk measures a piece of text and a picture of what changed, after
// a transcript of the given number of lines.
func benchmarkChunk(b *testing.B, lines int) {
	m := render.NewMarkdown(render.Dark(), 100)
	s := m.Stream()
	for i := range lines {
		_, _ = fmt.Fprintf(writer{s}, "Line %d of the transcript.\n\n", i)
		if i%100 == 0 {
			s.Lines()
		}
	}
	s.Lines()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%40 == 0 {
			s.Write("\n\n")
		}
		s.Write("word ")
		s.Lines()
	}
}

type writer struct{ s *render.Stream }

func (w writer) Write(p []byte) (int, error) {
	w.s.Write(string(p))
	return len(p), nil
}

func BenchmarkChunk(b *testing.B) {
	for _, lines := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) { benchmarkChunk(b, lines) })
	}
}

func BenchmarkWrite(b *testing.B) {
	s := render.NewMarkdown(render.Dark(), 100).Stream()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Write("word ")
		if i%40 == 0 {
			s.Write("\n\n")
			s.Lines()
		}
	}
}

func BenchmarkCodeChunk(b *testing.B) {
	s := render.NewMarkdown(render.Dark(), 100).Stream()
	s.Write("```go\n")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Write("if err := f(x); err != nil { return nil }\n")
		s.Lines()
	}
}
