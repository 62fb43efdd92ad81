package simulator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Survey is a script with a real job: it reads the files that the task lists,
// one after the other and several times over, and says at the end how many
// lines they have and which is the longest.
//
// It has no memory. What it knows it takes from each request, as a model does:
// the list of files from the user's message, the tally from what it said
// before or from the summary of a compaction, and the rest from the results of
// its last call. If any of that is lost on the way, its answer is wrong.
type Survey struct {
	// Passes is how many times the files are read.
	Passes int
	// Tool is the name of the tool that reads a file, Input makes the input of
	// its call.
	Tool  string
	Input func(path string) string
	// Lines takes the number of a file's lines from what the tool returned,
	// or from what a summary kept of it.
	Lines func(output string) (int, bool)
}

// SurveyTask is the user's message of a survey.
func SurveyTask(files []string, passes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Read each of these files completely, in this order, %d times over. Then tell me how many files there are, how many lines they have in all, and which one is the longest. Read every file; do not guess.\n", passes)
	for i, f := range files {
		fmt.Fprintf(&b, "\n%d. %s", i+1, f)
	}
	return b.String()
}

// surveyFile is a line of the list in the task.
var surveyFile = regexp.MustCompile(`(?m)^\d+\. (.+)$`)

// tally is what the survey knows at one time.
type tally struct {
	pass, files, lines int
	longest            string
	longestLines       int
}

// surveyTally is how the survey says what it knows.
var surveyTally = regexp.MustCompile(`Tally: pass (\d+), (\d+) files, (\d+) lines, longest (.*) with (\d+)\.`)

func (t tally) String() string {
	return fmt.Sprintf("Tally: pass %d, %d files, %d lines, longest %s with %d.", t.pass, t.files, t.lines, t.longest, t.longestLines)
}

// lastTally finds the latest tally in a text and what follows it.
func lastTally(text string) (t tally, rest string) {
	t = tally{pass: 1, longest: "none"}
	all := surveyTally.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return t, text
	}
	m := all[len(all)-1]
	number := func(i int) int {
		n, _ := strconv.Atoi(text[m[2*i]:m[2*i+1]]) // The expression takes digits only.
		return n
	}
	return tally{pass: number(1), files: number(2), lines: number(3), longest: text[m[8]:m[9]], longestLines: number(5)}, text[m[1]:]
}

// add counts a file.
func (t tally) add(path string, lines, files int) tally {
	if t.files == files { // The last pass was complete.
		t.pass, t.files, t.lines = t.pass+1, 0, 0
	}
	t.files++
	t.lines += lines
	if lines > t.longestLines {
		t.longest, t.longestLines = path, lines
	}
	return t
}

// next is the file that is read after the tally.
func (t tally) next(files []string) string { return files[t.files%len(files)] }

// Reply implements [Script].
func (s Survey) Reply(r *Request) Reply {
	files := surveyFiles(r)
	if len(files) == 0 {
		return Text("The task is gone: I see no list of files.")
	}
	if r.Compaction() {
		return s.summary(r, files)
	}
	known, _ := lastTally(r.Wrapper())
	for _, m := range r.Messages {
		if m.Role == RoleAssistant && surveyTally.MatchString(m.Text) {
			known, _ = lastTally(m.Text)
		}
	}
	results := r.Results()
	if len(results) > 0 {
		path := known.next(files)
		lines, ok := s.Lines(results[0].Output)
		if !ok {
			return Text(fmt.Sprintf("I could not read %s: %.200s", path, results[0].Output))
		}
		known = known.add(path, lines, len(files))
	}
	if known.files == len(files) && known.pass >= s.Passes {
		return Text(fmt.Sprintf("%s\n\nThere are %d files with %d lines in all. The longest is %s with %d lines.", known, known.files, known.lines, known.longest, known.longestLines))
	}
	return Reply{
		Text:  known.String(),
		Calls: []Call{{Name: s.Tool, Input: s.Input(known.next(files))}},
	}
}

// surveyFiles takes the list of files from the user's words, wherever in the
// request they stand.
func surveyFiles(r *Request) []string {
	var files []string
	for _, m := range r.Messages {
		if m.Role != RoleUser {
			continue
		}
		found := surveyFile.FindAllStringSubmatch(m.Text, -1)
		if len(found) == 0 {
			continue
		}
		files = files[:0]
		for i, f := range found {
			// The list is numbered from 1; what follows it is none of it.
			if !strings.HasPrefix(f[0], strconv.Itoa(i+1)+". ") {
				break
			}
			files = append(files, f[1])
		}
	}
	return files
}

// summary sums a conversation up: the tally, brought up to date by the result
// that came after it.
func (s Survey) summary(r *Request, files []string) Reply {
	known, rest := lastTally(r.Messages[len(r.Messages)-1].Text)
	if lines, ok := s.Lines(rest); ok {
		known = known.add(known.next(files), lines, len(files))
	}
	next := fmt.Sprintf("Read %s.", known.next(files))
	if known.files == len(files) && known.pass >= s.Passes {
		next = "Give the final answer."
	}
	return Text(Summary{
		Goal:     "Read the listed files in order and report their number, their lines and the longest one.",
		Progress: known.String(),
		Next:     next,
	}.Text(defaultSummaryTokens))
}
