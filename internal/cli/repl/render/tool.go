package render

import (
	"fmt"
	"strings"
	"time"

	"keen/internal/tools"
)

// Tool is a call as it is shown. Texts may come from the model or the tool as
// they are.
type Tool struct {
	// Label says what the call does, see [tools.Describe].
	Label string
	// Status says how it ended; it is empty as long as the call runs.
	Status tools.Status
	// Frame is the picture of the spinner while it runs, or empty.
	Frame string
	// Summary is a short phrase about the result, such as "120 lines".
	Summary string
	// Duration is how long it took, or has been running. Below a tenth of a
	// second it is not worth showing.
	Duration time.Duration
	// Command is the shell command of a call that runs one.
	Command string
	// ExitCode is the exit code of a command, nil when there is none.
	ExitCode *int
	// Output is what the call printed, so far or in the end.
	Output string
	// Diff is what the call changed, as a unified diff.
	Diff string
	// MaxLines bounds the lines of output and of diff that are shown each;
	// zero stands for [DefaultLines].
	MaxLines int
}

// DefaultLines is how many lines of output or diff are shown before the rest is
// folded away.
const DefaultLines = 30

// Running reports whether the call has not ended.
func (c Tool) Running() bool { return c.Status == "" }

func (c Tool) maxLines() int {
	if c.MaxLines <= 0 {
		return DefaultLines
	}
	return c.MaxLines
}

// ToolLine renders a call as one line: how it went, what it did, what came of
// it and how long it took.
func ToolLine(t *Theme, c Tool, width int) string {
	width = max(width, 1)
	mark, style := c.mark(t)
	var notes []string
	if text := OneLine(c.Summary); text != "" {
		notes = append(notes, text)
	}
	if c.ExitCode != nil && *c.ExitCode != 0 {
		notes = append(notes, fmt.Sprintf("exit %d", *c.ExitCode))
	}
	switch {
	case c.Running() && c.Duration >= time.Second:
		notes = append(notes, Elapsed(c.Duration))
	case !c.Running() && c.Duration >= 100*time.Millisecond:
		notes = append(notes, Duration(c.Duration))
	}
	label, note := OneLine(c.Label), ""
	if len(notes) > 0 {
		separator := " " + t.Glyphs.Separator + " "
		note = separator + strings.Join(notes, separator)
	}
	// What came of the call is worth more than the end of a long label.
	if room := width - 2 - Width(note); Width(label) > room {
		label = Truncate(label, max(room, width/2))
	}
	if note != "" {
		note = t.Dim.Styled(note)
	}
	return Truncate(style.Styled(mark)+" "+label+note, width)
}

func (c Tool) mark(t *Theme) (string, Style) {
	switch c.Status {
	case "":
		if c.Frame == "" {
			return t.Glyphs.Bullet, t.Accent
		}
		return c.Frame, t.Accent
	case tools.StatusSuccess:
		if c.ExitCode != nil && *c.ExitCode != 0 {
			return t.Glyphs.Error, t.Error
		}
		return t.Glyphs.Success, t.Success
	case tools.StatusDenied, tools.StatusCancelled:
		return t.Glyphs.Refused, t.Warning
	}
	return t.Glyphs.Error, t.Error
}

// ToolBlock renders a call with what it changed or printed: its line, then the
// diff, the block of its command, or the output of a call that failed.
func ToolBlock(t *Theme, c Tool, width int) []string {
	lines := []string{ToolLine(t, c, width)}
	inner := max(width, 1) - indentWidth(2, width)
	var body []string
	switch {
	case c.Diff != "":
		body = Diff(t, c.Diff, c.maxLines(), inner)
	case c.Command != "":
		body = c.bash(t, inner)
	case c.Output != "" && (c.Running() || c.Status == tools.StatusError):
		body = foldedOutput(t, c.Output, c.Running(), c.maxLines(), inner)
	}
	pad := strings.Repeat(" ", max(width, 1)-inner)
	return append(lines, hang(pad, pad, body)...)
}

// bash renders the command of a call and its output. A short command stands in
// the label already and is not shown twice.
func (c Tool) bash(t *Theme, width int) []string {
	b := Bash{Command: c.Command, Output: c.Output, Running: c.Running(), MaxLines: c.maxLines()}
	if command := Reveal(strings.TrimSpace(c.Command)); !strings.Contains(OneLine(c.Label), command) || Width(c.Label) > width*2/3 {
		return BashBlock(t, b, width)
	}
	if strings.TrimSpace(c.Output) == "" {
		return nil
	}
	b.Command = ""
	return BashBlock(t, b, width)
}

// Bash is a command as it is shown.
type Bash struct {
	// Command is the command as it was typed; empty when it stands elsewhere.
	Command string
	// Output is what it printed, so far or in the end.
	Output string
	// Running says that more may come: the last lines are shown, not the
	// first.
	Running bool
	// ExitCode is its exit code, nil when there is none or it is shown
	// elsewhere.
	ExitCode *int
	// MaxLines bounds the lines of output; zero stands for [DefaultLines].
	MaxLines int
}

// BashBlock renders a command and its output between rules.
func BashBlock(t *Theme, b Bash, width int) []string {
	width = max(width, 1)
	rule := t.Border.Styled(strings.Repeat(t.Glyphs.Rule, width))
	limit := b.MaxLines
	if limit <= 0 {
		limit = DefaultLines
	}
	lines := []string{rule}
	if b.Command != "" {
		lines = append(lines, commandLines(t, b.Command, limit, width)...)
	}
	lines = append(lines, foldedOutput(t, b.Output, b.Running, limit, width)...)
	if b.ExitCode != nil && *b.ExitCode != 0 {
		lines = append(lines, Truncate(t.Error.Styled(fmt.Sprintf("exit %d", *b.ExitCode)), width))
	}
	return append(lines, rule)
}

// commandLines shows a command with all of its characters, folded when it is
// very long.
func commandLines(t *Theme, command string, limit, width int) []string {
	indent := indentWidth(2, width)
	wrapped := CodeWrap(Reveal(strings.TrimSpace(command)), width-indent)
	kept, more := wrapped, 0
	if len(wrapped) > limit {
		kept, more = wrapped[:limit], len(wrapped)-limit
	}
	first, rest := "", ""
	if indent > 0 {
		first, rest = t.Dim.Styled("$")+" ", "  "
	}
	lines := hang(first, rest, styleLines(t.Code, kept))
	if more > 0 {
		lines = append(lines, moreLines(t, more, "more", width))
	}
	return lines
}

// foldedOutput shows the first lines of output, or the last ones of a running
// command, and says how much is not shown.
func foldedOutput(t *Theme, output string, running bool, limit, width int) []string {
	output = strings.TrimRight(overwrite(output), "\n")
	if strings.TrimSpace(output) == "" {
		return nil
	}
	total := strings.Count(output, "\n") + 1
	var kept string
	if running {
		kept = lastLines(output, limit)
	} else {
		kept = firstLines(output, limit)
	}
	hidden := total - strings.Count(kept, "\n") - 1
	lines := HardWrap(Sanitize(kept), width)
	if extra := len(lines) - 2*limit; extra > 0 { // Few, but very long lines.
		if running {
			lines = lines[extra:]
		} else {
			lines = lines[:2*limit]
		}
		hidden += extra
	}
	lines = styleLines(t.Dim, lines)
	if hidden == 0 {
		return lines
	}
	if running {
		return append([]string{moreLines(t, hidden, "earlier", width)}, lines...)
	}
	return append(lines, moreLines(t, hidden, "more", width))
}

// moreLines says how many lines are not shown, and which: "more" or "earlier".
func moreLines(t *Theme, n int, which string, width int) string {
	return Truncate(t.Dim.Styled(t.Glyphs.Arrow+" "+plural(n, which+" line")), width)
}

// overwrite does what a terminal does with a lone carriage return: what
// follows it takes the place of the line, as progress bars want it.
func overwrite(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.SplitAfterSeq(s, "\n") {
		text, end := strings.CutSuffix(line, "\n")
		text = strings.TrimRight(text, "\r")
		b.WriteString(text[strings.LastIndexByte(text, '\r')+1:])
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func firstLines(s string, n int) string {
	end := 0
	for range n {
		i := strings.IndexByte(s[end:], '\n')
		if i < 0 {
			return s
		}
		end += i + 1
	}
	return s[:end-1]
}

func lastLines(s string, n int) string {
	start := len(s)
	for range n {
		i := strings.LastIndexByte(s[:start], '\n')
		if i < 0 {
			return s
		}
		start = i
	}
	return s[start+1:]
}
