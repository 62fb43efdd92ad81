package widgets_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
)

// press makes the message of a key such as "ctrl+left", "enter" or "a".
func press(stroke string) tea.KeyPressMsg {
	var k tea.Key
	for {
		mod, rest, ok := strings.Cut(stroke, "+")
		if !ok || rest == "" {
			break
		}
		switch mod {
		case "ctrl":
			k.Mod |= tea.ModCtrl
		case "alt":
			k.Mod |= tea.ModAlt
		case "shift":
			k.Mod |= tea.ModShift
		}
		stroke = rest
	}
	special := map[string]rune{
		"enter": tea.KeyEnter, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"home": tea.KeyHome, "end": tea.KeyEnd, "tab": tea.KeyTab, "esc": tea.KeyEscape, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	if code, ok := special[stroke]; ok {
		k.Code = code
		return tea.KeyPressMsg(k)
	}
	k.Code, _ = utf8.DecodeRuneInString(stroke)
	if k.Mod == 0 {
		k.Text = stroke
	}
	return tea.KeyPressMsg(k)
}

func typeText(e *widgets.Editor, text string) {
	for _, r := range text {
		e.Update(tea.KeyPressMsg{Text: string(r), Code: r})
	}
}

// newEditor returns an editor with text in it; the cursor stands at the bar.
func newEditor(text string) *widgets.Editor {
	e := widgets.NewEditor(render.Dumb())
	before, after, _ := strings.Cut(text, "|")
	e.SetValue(after)
	e.Update(press("ctrl+home"))
	e.Insert(before)
	return e
}

// withBar returns the text with a bar at the cursor.
func withBar(e *widgets.Editor) string {
	before := *e
	text := e.Value()
	before.Insert("\x00")
	return text[:strings.IndexByte(before.Value(), 0)] + "|" + text[strings.IndexByte(before.Value(), 0):]
}

func TestKeysMoveAndEdit(t *testing.T) {
	tests := []struct {
		name, start string
		keys        []string
		want        string
	}{
		{"typing", "a|c", []string{"b"}, "ab|c"},
		{"left and right stop at the ends", "|a", []string{"left", "right", "right"}, "a|"},
		{"characters are whole", "👩‍👩‍👧e\u0301|", []string{"left", "left"}, "|👩‍👩‍👧e\u0301"},
		{"backspace takes a whole character", "👩‍👩‍👧|", []string{"backspace"}, "|"},
		{"word left", "one two  |", []string{"ctrl+left"}, "one |two  "},
		{"word right", "|one two", []string{"alt+f", "ctrl+right"}, "one two|"},
		{"line start and end", "a\nbc|d\ne", []string{"ctrl+a", "x", "ctrl+e", "y"}, "a\nxbcdy|\ne"},
		{"delete word left", "one two|", []string{"ctrl+w"}, "one |"},
		{"delete word right", "|one two", []string{"alt+d"}, "| two"},
		{"delete to line start", "a\nbc|d", []string{"ctrl+u"}, "a\n|d"},
		{"delete to line end", "a|b\nc", []string{"ctrl+k"}, "a|\nc"},
		{"delete forward", "a|bc", []string{"delete", "ctrl+d"}, "a|"},
		{"delete at the ends", "|", []string{"backspace", "delete"}, "|"},
		{"shift+enter", "a|b", []string{"shift+enter"}, "a\n|b"},
		{"alt+enter", "a|b", []string{"alt+enter"}, "a\n|b"},
		{"ctrl+j", "a|b", []string{"ctrl+j"}, "a\n|b"},
		{"backslash and enter", `a\|b`, []string{"enter"}, "a\n|b"},
		{"up keeps the column", "abcd\nx\nabc|d", []string{"up", "up"}, "abc|d\nx\nabcd"},
		{"down keeps the column", "ab|cd\n\nabcd", []string{"down", "down"}, "abcd\n\nab|cd"},
		{"up on the first line goes to its start", "ab|c", []string{"up"}, "|abc"},
		{"down on the last line goes to its end", "a|bc", []string{"down"}, "abc|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEditor(tt.start)
			for _, key := range tt.keys {
				if e.Update(press(key)).Kind == widgets.EditorIgnored {
					t.Errorf("%s was ignored", key)
				}
			}
			if got := withBar(e); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEnterSubmitsOnceAndEmpties(t *testing.T) {
	e := newEditor("hello\nworld|")
	if diff := cmp.Diff(widgets.EditorEvent{Kind: widgets.EditorSubmitted, Text: "hello\nworld"}, e.Update(press("enter"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !e.Empty() {
		t.Errorf("the editor holds %q", e.Value())
	}
	typeText(e, "  ")
	if got := e.Update(press("enter")); got.Kind != widgets.EditorMoved {
		t.Errorf("blank text: %+v", got)
	}
}

func TestKeysOfTheProgramAreIgnored(t *testing.T) {
	e := newEditor("|")
	for _, key := range []string{"esc", "ctrl+c", "ctrl+d", "tab", "shift+tab", "pgup", "ctrl+z"} {
		if got := e.Update(press(key)); got.Kind != widgets.EditorIgnored {
			t.Errorf("%s: %+v", key, got)
		}
	}
}

func TestLongPastesFoldAndAreSentByteForByte(t *testing.T) {
	long := strings.Repeat("line\n", 120)
	tests := []struct{ name, paste, label, want string }{
		{"short", "a\tb", "", "a\tb"},
		{"ten lines", strings.Repeat("x\n", 9) + "x", "", strings.Repeat("x\n", 9) + "x"},
		{"many lines", long, "[Pasted text #1, 120 lines]", long},
		{"many characters", strings.Repeat("é", 1001), "[Pasted text #1, 1001 characters]", strings.Repeat("é", 1001)},
		{"CRLF stays", strings.Repeat("x\r\n", 20), "[Pasted text #1, 20 lines]", strings.Repeat("x\r\n", 20)},
		{"CR as terminals send it", "a\rb", "", "a\nb"},
		{"controls and bad bytes", "a\x1b[31m\x00\xff\u202eb", "", "a\x1b[31m\x00\xff\u202eb"},
		{"combining", "e\u0301\u200d", "", "e\u0301\u200d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEditor("before | after")
			if got := e.Update(tea.PasteMsg{Content: tt.paste}); got.Kind != widgets.EditorChanged {
				t.Fatalf("event %+v", got)
			}
			if diff := cmp.Diff("before "+tt.want+" after", e.Value()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			view := strings.Join(e.View(), "\n")
			if tt.label != "" && !strings.Contains(view, tt.label) {
				t.Errorf("the view has no %q:\n%s", tt.label, view)
			}
			if strings.ContainsAny(view, "\x1b\x00\u202e") {
				t.Errorf("the view has control characters: %q", view)
			}
			if got := e.Update(press("enter")); got.Text != "before "+tt.want+" after" {
				t.Errorf("submitted %q", got.Text)
			}
		})
	}
}

func TestRandomPastesAreByteExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		e := widgets.NewEditor(render.Dumb())
		want := ""
		for range 1 + r.IntN(4) {
			paste := make([]byte, r.IntN(1500))
			for i := range paste {
				paste[i] = byte(r.IntN(256))
			}
			paste = append([]byte("\n"), paste...) // With a line feed nothing is translated.
			want += string(paste)
			e.Update(tea.PasteMsg{Content: string(paste)})
			e.View()
		}
		if e.Value() != want {
			t.Fatalf("got %q, want %q", e.Value(), want)
		}
	}
}

func TestFoldedPasteIsOneCharacterToTheKeys(t *testing.T) {
	e := newEditor("a|b")
	e.Update(tea.PasteMsg{Content: strings.Repeat("x\n", 50)})
	e.Update(tea.PasteMsg{Content: strings.Repeat("y\n", 60)})
	if view := strings.Join(e.View(), "\n"); !strings.Contains(view, "a[Pasted text #1, 50 lines][Pasted text #2, 60 lines]b") {
		t.Errorf("view %q", view)
	}
	e.Update(press("backspace"))
	e.Update(press("left"))
	e.Update(press("delete"))
	if got := withBar(e); got != "a|b" {
		t.Errorf("got %q", got)
	}
}

func TestImagesAreRefusedWithAReason(t *testing.T) {
	images := []string{
		"file:///home/me/shot.png", "/tmp/My Picture.JPG\n", "'/home/me/a.webp'", `C:\shots\a.png`, "~/a.gif",
		"\x89PNG\r\n\x1a\n...", "\x1b]1337;File=inline=1:AAAA\a", "data:image/png;base64,AAAA",
	}
	for _, paste := range images {
		e := newEditor("text|")
		got := e.Update(tea.PasteMsg{Content: paste})
		if got.Kind != widgets.EditorRefused || !strings.Contains(got.Text, "text only") || e.Value() != "text" {
			t.Errorf("%q: %+v, value %q", paste, got, e.Value())
		}
	}
	for _, paste := range []string{"look at logo.png", "assets/logo.png", "/etc/hosts", "/a.png and\n/b.png"} {
		if got := newEditor("|").Update(tea.PasteMsg{Content: paste}); got.Kind != widgets.EditorChanged {
			t.Errorf("%q: %+v", paste, got)
		}
	}
}

func TestHistoryKeepsTheDraftAndItsPastes(t *testing.T) {
	e := newEditor("|")
	e.SetHistory([]string{"first", "second\nlines"})
	e.AddHistory("second\nlines")
	e.AddHistory("  ")
	paste := strings.Repeat("p\n", 20)
	typeText(e, "draft ")
	e.Update(tea.PasteMsg{Content: paste})
	var got []string
	for _, key := range []string{"up", "up", "up", "up", "down", "down", "down"} {
		e.Update(press(key))
		got = append(got, e.Value())
	}
	draft := "draft " + paste
	want := []string{"second\nlines", "second\nlines", "first", "first", "second\nlines", draft, draft}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if view := strings.Join(e.View(), "\n"); !strings.Contains(view, "[Pasted text #1, 20 lines]") {
		t.Errorf("the draft is not folded any more: %q", view)
	}
}

func TestHistorySearch(t *testing.T) {
	e := newEditor("kept|")
	e.SetHistory([]string{"Go test", "fix it", "go vet"})
	e.Update(press("ctrl+r"))
	typeText(e, "GO")
	if !e.Searching() || !strings.Contains(strings.Join(e.View(), "\n"), "search: GO > go vet") {
		t.Errorf("view %q", e.View())
	}
	e.Update(press("ctrl+r"))
	e.Update(press("ctrl+r")) // There is no older one.
	if got := e.Update(press("enter")); got.Kind != widgets.EditorChanged || e.Value() != "Go test" {
		t.Errorf("event %+v, value %q", got, e.Value())
	}
	e = newEditor("kept|")
	e.SetHistory([]string{"x"})
	e.Update(press("ctrl+r"))
	typeText(e, "nothing")
	if view := strings.Join(e.View(), "\n"); !strings.Contains(view, "nothing found") {
		t.Errorf("view %q", view)
	}
	e.Update(press("esc"))
	if e.Searching() || e.Value() != "kept" {
		t.Errorf("after esc: searching %v, value %q", e.Searching(), e.Value())
	}
}

func TestEditorGrowsToFifteenLinesAndFollowsTheCursor(t *testing.T) {
	e := newEditor("|")
	for i := range 30 {
		if want := min(i+1, widgets.MaxEditorLines); e.Height() != want || len(e.View()) != want {
			t.Fatalf("%d lines: height %d, view %d", i+1, e.Height(), len(e.View()))
		}
		typeText(e, fmt.Sprintf("line %d", i))
		e.Update(press("ctrl+j"))
	}
	if _, y := e.Cursor(); y != widgets.MaxEditorLines-1 {
		t.Errorf("the cursor is in line %d", y)
	}
	e.Update(press("ctrl+home"))
	if x, y := e.Cursor(); x != 2 || y != 0 || e.View()[0] != "> line 0" {
		t.Errorf("the cursor is at %d,%d of %q", x, y, e.View()[0])
	}
}

func TestEditorFitsAnyWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "word ", "日本", "👩‍👩‍👧", "\n", "\t", "   ", "\x1b[2J", "ש", "averyveryverylongword"}
	for width := 1; width <= 60; width++ {
		e := widgets.NewEditor(render.Dark())
		e.SetWidth(width)
		e.SetPlaceholder("Ask anything, / for commands")
		for i := range 60 {
			for _, line := range e.View() {
				if got := render.Width(line); got > width {
					t.Fatalf("width %d: %q has %d cells", width, line, got)
				}
			}
			x, y := e.Cursor()
			if x < 0 || x >= width || y < 0 || y >= e.Height() {
				t.Fatalf("width %d: the cursor is at %d,%d of %q", width, x, y, e.View())
			}
			switch i % 7 {
			case 5:
				e.Update(press("up"))
			case 6:
				e.Update(tea.PasteMsg{Content: strings.Repeat("x\n", 12)})
			default:
				e.Insert(pieces[r.IntN(len(pieces))])
			}
		}
	}
}

func TestWordsAreNotTornApart(t *testing.T) {
	e := newEditor("one two three four|")
	e.SetWidth(13)
	if diff := cmp.Diff([]string{"> one two", "  three four"}, e.View()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if x, y := e.Cursor(); x != 12 || y != 1 {
		t.Errorf("the cursor is at %d,%d", x, y)
	}
}

func TestTriggerFindsWhatCanBeCompleted(t *testing.T) {
	tests := []struct {
		text  string
		sign  rune
		query string
		done  string // after completing with X
	}{
		{"/comp|", '/', "comp", "X |"},
		{"/|", '/', "", "X |"},
		{"a /comp|", 0, "", ""},
		{"/compact now|", 0, "", ""},
		{"read @int/ma|", '@', "int/ma", "read X |"},
		{"read @a|  b", '@', "a", "read X|  b"},
		{"mail me@home|", 0, "", ""},
		{"|", 0, "", ""},
		{"x |", 0, "", ""},
	}
	for _, tt := range tests {
		e := newEditor(tt.text)
		got, ok := e.Trigger()
		if ok != (tt.sign != 0) || got.Sign != tt.sign || got.Query != tt.query {
			t.Errorf("%q: got %+v, %v", tt.text, got, ok)
			continue
		}
		if ok {
			e.Complete(got, "X")
			if bar := withBar(e); bar != tt.done {
				t.Errorf("%q: completed to %q, want %q", tt.text, bar, tt.done)
			}
		}
	}
}
