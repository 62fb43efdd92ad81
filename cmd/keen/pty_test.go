//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/session"
	"keen/internal/simulator"
)

// usual is the size of most terminals here.
var usual = windowSize{width: 100, height: 30}

// The texts that the specification sets.
const (
	compacting = "Compacting..."
	compacted  = "Context compacted automatically."
)

// secret stands in every scripted summary, which is not for the screen.
const secret = "zebra"

func summaryReply() simulator.Reply {
	return simulator.Text(simulator.Summary{
		Goal:     "Follow the " + secret + " all the way, as the user asked, and say at its end that it is reached.",
		Progress: "The file big.txt was read again and again; about half of the way is done and nothing is in doubt.",
		Next:     "Read big.txt once more, then decide.",
	}.Text(400))
}

// bigFile is a file of about two thousand tokens.
func bigFile() string {
	return strings.Repeat("a line of the file that is read again and again\n", 130)
}

// reader is a model that reads big.txt until there were enough compactions, and
// then answers. Fault says what happens to the nth request for a summary,
// counted from 1.
func reader(compactions int, answer simulator.Reply, fault func(n int) *simulator.Fault) simulator.Script {
	summaries, step := 0, 0
	return simulator.Split(simulator.ScriptFunc(func(*simulator.Request) simulator.Reply {
		if summaries >= compactions {
			return answer
		}
		step++
		return call(fmt.Sprintf("Step %d of the way.", step), "read_file", map[string]any{"path": "big.txt"})
	}), simulator.ScriptFunc(func(*simulator.Request) simulator.Reply {
		summaries++
		reply := summaryReply()
		reply.Fault = fault(summaries)
		return reply
	}))
}

// numbered returns a text of numbered lines, each a paragraph.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "answer line %d\n\n", i+1)
	}
	return b.String()
}

var numberedLine = regexp.MustCompile(`answer line (\d+)`)

// checkNumbers checks that the numbered lines stand in the terminal once each
// and in order.
func checkNumbers(t *testing.T, text string, n int) {
	t.Helper()
	var got, want []int
	for _, m := range numberedLine.FindAllStringSubmatch(text, -1) {
		i, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, i)
	}
	for i := range n {
		want = append(want, i+1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbered lines (-want +got):\n%s\n%s", diff, text)
	}
}

func TestTheFirstStartHelpsToAModelInsteadOfFailing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	x := h.start(usual)
	x.never("Error")
	x.never("keen:")
	x.shows("Where should the model come from?", "Sign in with ChatGPT", "Use an API key", "keen demo")
	x.keys(escKey)
	x.shows("No model is set up yet")
	x.keys("hello\r") // Without a model it leads back to the setup, and is not lost.
	x.shows("Where should the model come from?")
	x.keys(escKey)
	x.hides("Where should the model come from?")
	x.shows("hello")
	x.keys(ctrlC)
	x.hides("hello")
	x.leave()
}

func TestALongTurnIsCompactedTwiceAndAnsweredInFull(t *testing.T) {
	t.Parallel()
	const lines = 60
	first, between, second := newGate(), newGate(), newGate()
	summaries := map[int]gate{1: first, 2: second}
	script := reader(2, simulator.Text(numbered(lines)), func(n int) *simulator.Fault { return summaries[n].fault(4) })
	steps := 0 // after the first compaction
	server := serve(t, simulator.ScriptFunc(func(r *simulator.Request) simulator.Reply {
		reply := script.Reply(r)
		if !r.Compaction() && r.Wrappers() > 0 {
			if steps++; steps == 1 {
				reply.Fault = between.fault(1)
			}
		}
		return reply
	}))
	h := newHome(t)
	h.write("big.txt", bigFile())
	x := h.converse(server, usual)
	x.never(secret)
	x.keys("walk the long way\r")

	first.wait(x)
	x.shows(compacting, "esc to skip the compaction")
	first.open()
	between.wait(x)
	x.shows("Working", "esc to interrupt", compacted)
	x.hides(compacting)
	x.hides(compacted) // It goes by itself.
	between.open()

	second.wait(x)
	x.shows(compacting)
	second.open()
	x.shows(compacted)
	x.until("the end of the answer", func() bool { return strings.Contains(x.text(), fmt.Sprintf("answer line %d", lines)) })
	x.idle()
	x.hides(compacted)
	checkNumbers(t, x.text(), lines)
	x.leave()

	records := settled(t, server)
	if n := len(records.OverWindow()) + len(records.Rejected()); n != 0 {
		t.Errorf("%d requests were too large or refused", n)
	}
	if n := h.checkpoints(); n != 2 {
		t.Errorf("%d checkpoints are stored, want 2", n)
	}
	if last := h.events(); last[len(last)-1].Outcome != session.OutcomeDone {
		t.Errorf("the session ends with %+v", last[len(last)-1])
	}
}

func TestEscWhileTheModelSpeaksInterruptsTheTurn(t *testing.T) {
	t.Parallel()
	g := newGate()
	half := simulator.Reply{Text: "The first half and the second half.", ChunkBytes: 4, Fault: g.fault(6)}
	server := serve(t, simulator.NewSequence(half, simulator.Text("Here I am again.")))
	h := newHome(t)
	x := h.converse(server, usual)
	x.keys("speak\r")
	g.wait(x)
	x.shows("The first", "esc to interrupt")
	x.keys(escKey)
	x.shows("Interrupted")
	x.idle()
	if records := settled(t, server); !records[0].ClientLeft {
		t.Error("the request went on")
	}
	x.keys("again\r")
	x.shows("Here I am again.")
	x.idle()
	x.leave()
}

func TestEscWhileAToolRunsEndsItAndTheTurn(t *testing.T) {
	t.Parallel()
	server := serve(t, simulator.NewSequence(
		call("", "bash", map[string]any{"command": "echo $$ > pid; echo now it runs; exec sleep 600"}), simulator.Text("Here I am again.")))
	h := newHome(t)
	x := h.converse(server, usual)
	x.keys("run it\r")
	x.shows("Allow once")
	x.allow()
	x.shows("now it runs", "esc to interrupt")
	x.keys(escKey)
	x.shows("Interrupted")
	x.idle()
	text, _ := h.read("pid")
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command is still there: %v", err)
	}
	x.keys("again\r")
	x.shows("Here I am again.")
	x.idle()
	x.leave()
}

func TestEscDuringACompactionCancelsOnlyTheCompaction(t *testing.T) {
	t.Parallel()
	g := newGate()
	server := serve(t, reader(1, simulator.Text("The turn went on to its end."), func(int) *simulator.Fault { return g.fault(4) }))
	h := newHome(t)
	h.write("big.txt", bigFile())
	x := h.converse(server, usual)
	x.never(secret)
	x.never("Interrupted")
	x.never(compacted)
	x.keys("walk the long way\r")
	g.wait(x)
	x.shows(compacting)
	x.keys(escKey)
	x.shows("The turn went on to its end.")
	x.hides(compacting)
	x.idle()
	records := settled(t, server)
	if c := records.Compactions(); len(c) != 1 || !c[0].ClientLeft {
		t.Errorf("%d requests for summaries, the first went on", len(c))
	}
	for _, r := range records.Parents() {
		if r.ClientLeft {
			t.Errorf("request %d of the turn was given up", r.Request.Number)
		}
	}
	x.leave()
	if n := h.checkpoints(); n != 0 {
		t.Errorf("%d checkpoints are stored, want none", n)
	}
}

func TestCtrlCDuringACompactionEndsTheTurnAndLeavesAUsablePrompt(t *testing.T) {
	t.Parallel()
	g := newGate()
	server := serve(t, reader(1, simulator.Text("Here I am again."), func(int) *simulator.Fault { return g.fault(4) }))
	h := newHome(t)
	h.write("big.txt", bigFile())
	x := h.converse(server, usual)
	x.never(secret)
	x.never(compacted)
	x.keys("walk the long way\r")
	g.wait(x)
	x.shows(compacting)
	x.keys(ctrlC)
	x.shows("Interrupted")
	x.hides(compacting)
	x.idle()
	x.keys("again\r")
	x.shows("Here I am again.")
	x.idle()
	x.leave()
	if n := h.checkpoints(); n != 0 {
		t.Errorf("%d checkpoints are stored, want none", n)
	}
}

func TestPromptsTypedInATurnAreSentAfterItInOrder(t *testing.T) {
	t.Parallel()
	g := newGate()
	slow := simulator.Reply{Text: "The answer to one.", ChunkBytes: 4, Fault: g.fault(3)}
	server := serve(t, simulator.NewSequence(slow, simulator.Text("The answer to two."), simulator.Text("The answer to three.")))
	h := newHome(t)
	x := h.converse(server, usual)
	x.keys("prompt one\r")
	g.wait(x)
	x.keys("prompt two\r")
	x.shows("1 waiting")
	x.keys("prompt three\r")
	x.shows("2 waiting", "prompt two", "prompt three")
	g.open()
	x.shows("The answer to three.")
	x.idle()
	x.hides("waiting")
	var got []string
	for _, r := range settled(t, server) {
		got = append(got, r.Request.Messages[len(r.Request.Messages)-1].Text)
	}
	if diff := cmp.Diff([]string{"prompt one", "prompt two", "prompt three"}, got); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	text := x.text()
	if !inOrder(text, "prompt one", "The answer to one.", "prompt two", "The answer to two.", "prompt three", "The answer to three.") {
		t.Errorf("the conversation is out of order:\n%s", text)
	}
	x.leave()
}

// inOrder reports whether the parts stand in the text, one after the other.
func inOrder(text string, parts ...string) bool {
	for _, p := range parts {
		_, after, found := strings.Cut(text, p)
		if !found {
			return false
		}
		text = after
	}
	return true
}

func TestAFileIsWrittenOnlyIfTheUserAllowsIt(t *testing.T) {
	t.Parallel()
	server := serve(t, simulator.NewSequence(
		call("", "write_file", map[string]any{"path": "yes.txt", "content": "written by keen\n"}), simulator.Text("The first is done."),
		call("", "write_file", map[string]any{"path": "no.txt", "content": "written by keen\n"}), simulator.Text("The second is done.")))
	h := newHome(t)
	x := h.converse(server, usual)
	x.keys("write yes.txt\r")
	x.shows("Allow this?", "yes.txt", "written by keen", "Allow once", "Deny")
	if _, there := h.read("yes.txt"); there {
		t.Error("the file was written before the answer")
	}
	x.allow()
	x.shows("The first is done.")
	x.idle()
	if text, _ := h.read("yes.txt"); text != "written by keen\n" {
		t.Errorf("the file holds %q", text)
	}

	x.keys("write no.txt\r")
	x.shows("Allow this?", "no.txt")
	x.keys(escKey)
	x.shows("The second is done.")
	x.idle()
	if _, there := h.read("no.txt"); there {
		t.Error("a denied file was written")
	}
	records := settled(t, server)
	if results := records[3].Request.Results(); len(results) != 1 || !strings.Contains(results[0].Output, "denied") {
		t.Errorf("the model was told %+v", results)
	}
	x.leave()
}

func TestAResumedSessionShowsWhatWasVisibleBefore(t *testing.T) {
	t.Parallel()
	server := serve(t, reader(1, simulator.Text("The end of the way."), func(int) *simulator.Fault { return nil }))
	h := newHome(t)
	h.write("big.txt", bigFile())
	x := h.converse(server, usual)
	x.keys("walk the long way\r")
	x.until("the answer", func() bool { return strings.Contains(x.text(), "The end of the way.") })
	x.idle()
	x.leave()
	again := regexp.MustCompile(`keen --resume (\S+)`).FindStringSubmatch(x.text())
	if again == nil {
		t.Fatalf("it does not say how to go on:\n%s", x.text())
	}

	x = h.converse(server, usual, "--resume", again[1])
	x.never(secret)
	x.never(compacted)
	x.shows("The end of the way.")
	x.until("what was visible", func() bool {
		return inOrder(x.text(), "walk the long way", "Step 1 of the way.", "big.txt", "Step 2 of the way.", "The end of the way.")
	})
	x.keys("and now?\r")
	x.until("the next answer", func() bool { return inOrder(x.text(), "The end of the way.", "and now?", "The end of the way.") })
	x.idle()
	x.leave()
	records := settled(t, server)
	last := records[len(records)-1].Request
	if last.Wrappers() != 1 || !last.Contains("walk the long way") {
		t.Errorf("the model goes on from %d summaries, want 1 and the user's own words", last.Wrappers())
	}
}

func TestTheTerminalMayChangeItsSizeWhileTheModelSpeaks(t *testing.T) {
	t.Parallel()
	const lines = 40
	g := newGate()
	server := serve(t, simulator.NewSequence(simulator.Reply{Text: numbered(lines), ChunkBytes: 16, Fault: g.fault(6)}))
	h := newHome(t)
	x := h.converse(server, usual)
	x.keys("count\r")
	g.wait(x)
	x.shows("answer line 4")
	x.resize(windowSize{60, 20})
	x.until("a narrow screen", func() bool { return widestRule(x.visible()) == 60 })
	x.resize(windowSize{24, 6})
	x.until("a tiny screen", func() bool { return widestRule(x.visible()) == 0 })
	x.shows("answer line 5", "Working")
	x.resize(windowSize{120, 40})
	g.open()
	x.shows(fmt.Sprintf("answer line %d", lines))
	x.until("a wide screen", func() bool { return widestRule(x.visible()) == 120 })
	x.idle()
	x.leave()
}

// widestRule returns the width of the widest line that is drawn across the
// screen, 0 when there is none.
func widestRule(screen string) int {
	widest := 0
	for line := range strings.Lines(screen) {
		if line = strings.TrimSpace(line); strings.Trim(line, "─") == "" {
			widest = max(widest, strings.Count(line, "─"))
		}
	}
	return widest
}

func TestCommandsAnswerOnTheScreen(t *testing.T) {
	t.Parallel()
	server := serve(t, simulator.NewSequence(simulator.Text("The answer.")))
	h := newHome(t)
	x := h.converse(server, windowSize{width: 100, height: 50})
	x.keys("a question\r")
	x.shows("The answer.")
	x.idle()
	x.keys("/context\r")
	x.shows("System prompt", "Tool definitions", "Your messages", "Tool results", "Free", "Compaction from")
	x.keys("/help\r")
	x.shows("/compact", "/permissions", "/exit", "Ctrl+R", "Shift+Enter")
	x.keys("/nonsense\r")
	x.shows("There is no command /nonsense")
	x.keys(ctrlC)
	x.hides("/nonsense\n")
	x.leave()
	if n := len(settled(t, server)); n != 1 {
		t.Errorf("%d requests, want 1: commands are not for the model", n)
	}
	if x.screen.IsAltScreen() || x.screen.CursorHidden() {
		t.Error("the terminal is left without its cursor or its own screen")
	}
	if _, err := os.Stat(h.dir + "/config/keen"); err == nil {
		t.Error("flags were written into the configuration")
	}
}

func TestTheDemoRunsOnTheScreenAndReportsBelowIt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	x := h.start(usual, "demo", "--window", "16384")
	x.until("the start", func() bool { return inOrder(x.text(), "scripted", "This is the demo") })
	x.shows(compacting)
	x.shows(compacted)
	x.until("the answer", func() bool { return strings.Contains(x.text(), "lines in all. The longest is") })
	x.idle()
	x.leave()
	if text := x.text(); !inOrder(text, "lines in all. The longest is", "right: checked against the files themselves", "compactions inside the one turn") ||
		strings.Contains(text, "keen --resume") {
		t.Errorf("the report is not below the answer:\n%s", text)
	}
	for _, name := range []string{"state", "config"} {
		if _, err := os.Stat(filepath.Join(h.dir, name, "keen")); err == nil {
			t.Errorf("the demo left something in %s", name)
		}
	}
	if left, err := os.ReadDir(h.tmp); err != nil || len(left) != 0 {
		t.Errorf("the demo left %d temporary files: %v", len(left), err)
	}
}

func TestALeftDemoSaysThatThereIsNoReport(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	x := h.start(usual, "demo")
	x.shows(compacting)
	x.leave()
	if text := x.text(); !strings.Contains(text, "The demo was left before its end") {
		t.Errorf("it does not say so:\n%s", text)
	}
}

func TestTheHeadlessDemoPrintsStepsOnATerminalToo(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	x := h.start(usual, "demo", "--headless", "--window", "16384")
	x.exits()
	if text := x.text(); !inOrder(text, "compacting inside the turn", "right: checked against the files themselves") {
		t.Errorf("the steps are not shown:\n%s", text)
	}
}
