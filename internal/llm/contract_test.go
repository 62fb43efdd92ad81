package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/simulator"
	"keen/internal/tools"
)

// read asks for a part of the job.
func read(part int) simulator.Reply {
	return simulator.Calls(simulator.Call{Name: "read_part", Input: fmt.Sprintf(`{"part":%d}`, part)})
}

// readMany asks for ten parts at once, about 20,000 tokens.
func readMany() simulator.Reply {
	reply := simulator.Reply{}
	for i := range 10 {
		reply.Calls = append(reply.Calls, read(i).Calls...)
	}
	return reply
}

func parts() *tools.Registry { return tools.NewRegistry(partTool{}) }

// faultAt makes the n-th request that is no compaction go wrong, once.
func faultAt(n int, f *simulator.Fault) func(*simulator.Request) *simulator.Fault {
	parents := 0
	return func(r *simulator.Request) *simulator.Fault {
		if r.Compaction() {
			return nil
		}
		parents++
		if parents == n {
			return f
		}
		return nil
	}
}

// wantRules fails the test when the server found a rule of its wire broken.
func wantRules(t *testing.T, server *simulator.Server) {
	t.Helper()
	for _, r := range server.Records().Rejected() {
		if r.Verdict == simulator.RejectedRule {
			t.Errorf("request %d broke a rule: %s", r.Request.Number, r.Reason)
		}
	}
}

func TestContractOverflowIsRecoveredWhereverItIsReported(t *testing.T) {
	stop := read(2)
	stop.Text, stop.Calls, stop.Stop = "half an answer", nil, simulator.StopContextWindow
	for name, c := range map[string]struct {
		fault *simulator.Fault
		reply *simulator.Reply
	}{
		"as an HTTP error": {fault: simulator.Overflow()},
		"mid-stream":       {fault: simulator.StreamOverflow(2)},
		"as a stop reason": {reply: &stop},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryWire(t, func(t *testing.T, w wireUnderTest) {
				replies := []simulator.Reply{readMany()}
				if c.reply != nil {
					replies = append(replies, *c.reply)
				}
				if name == "mid-stream" { // The answer that breaks off.
					replies = append(replies, simulator.Text("half an answer, in pieces of which some are sent"))
				}
				replies = append(replies, simulator.Text("The whole answer."))
				script := simulator.Inject(simulator.NewSequence(replies...), faultAt(2, c.fault))
				server, client := w.simulate(t, simulator.Options{Script: script, Window: 128000}, 128000)
				events := runTurn(t, client, parts(), system("You are Keen."), user(task))
				wantDone(t, events)
				if got := answerText(events); got != "The whole answer." {
					t.Errorf("the answer is %q", got)
				}
				if n := len(server.Records().Compactions()); n != 1 {
					t.Errorf("%d compactions, want 1", n)
				}
				wantRules(t, server)
			})
		})
	}
}

func TestContractSecondOverflowIsTerminal(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		parents := 0
		script := simulator.Inject(simulator.NewSequence(readMany(), simulator.Text("never")), func(r *simulator.Request) *simulator.Fault {
			if r.Compaction() {
				return nil
			}
			if parents++; parents > 1 {
				return simulator.Overflow()
			}
			return nil
		})
		server, client := w.simulate(t, simulator.Options{Script: script, Window: 128000}, 128000)
		events := runTurn(t, client, parts(), user(task))
		if end := last(events); end.Type != StreamEventTypeError || !errors.Is(end.Err, ErrContextWindowExceeded) {
			t.Errorf("ended with %s: %v", end.Type, end.Err)
		}
		if p, c := len(server.Records().Parents()), len(server.Records().Compactions()); p != 3 || c != 1 {
			t.Errorf("%d requests and %d compactions, want 3 and 1", p, c)
		}
	})
}

func TestContractStreamCutMidwayIsRetriedWithoutDuplicatedText(t *testing.T) {
	for name, fault := range map[string]*simulator.Fault{
		"clean end":      simulator.EndEarly(4),
		"before the end": simulator.EndEarly(simulator.AfterContent),
		"dropped":        simulator.Drop(4),
		"reset":          simulator.Reset(4),
		"error event":    simulator.StreamError(4, ""),
		"503":            simulator.HTTPError(http.StatusServiceUnavailable),
		"429":            simulator.RateLimit(0),
		"500":            simulator.HTTPError(http.StatusInternalServerError),
		"overloaded":     simulator.HTTPError(529),
	} {
		t.Run(name, func(t *testing.T) {
			onEveryWire(t, func(t *testing.T, w wireUnderTest) {
				answer := simulator.Text("One answer, said once, from its beginning to its end, in enough pieces to be cut.")
				answer.ChunkBytes = 8
				inner := simulator.ScriptFunc(func(*simulator.Request) simulator.Reply { return answer })
				server, client := w.simulate(t, simulator.Options{Script: simulator.Inject(inner, faultAt(1, fault)), Window: 128000}, 128000)
				events := runTurn(t, client, nil, user(task))
				wantDone(t, events)
				if got := answerText(events); got != answer.Text {
					t.Errorf("the answer is %q", got)
				}
				if n := count(events, StreamEventTypeRetry); n != 1 {
					t.Errorf("%d retries, want 1", n)
				}
				if n := len(server.Records()); n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
			})
		})
	}
}

// compactingTurn is a script whose turn is compacted before its third request.
func compactingTurn(summary func(*simulator.Request) simulator.Reply) *simulator.Sequence {
	s := simulator.NewSequence(read(1), readMany(), simulator.Text("Done."))
	s.Summary = summary
	return s
}

func TestContractUnusableSummariesAreRefused(t *testing.T) {
	for name, summary := range map[string]simulator.Reply{
		"empty":     {},
		"truncated": {Text: goodSummary, Stop: simulator.StopLength},
		"tool call": read(1),
		"reasoning": {Reasoning: strings.Repeat("Let me think about it. ", 50)},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryWire(t, func(t *testing.T, w wireUnderTest) {
				script := compactingTurn(func(*simulator.Request) simulator.Reply { return summary })
				server, client := w.simulate(t, simulator.Options{Script: script, Window: 32768}, 32768)
				events := runTurn(t, client, parts(), user(task))
				wantDone(t, events)
				if n := count(events, StreamEventTypeAutoCompactionApplied); n != 0 {
					t.Error("it was applied")
				}
				if n := count(events, StreamEventTypeAutoCompactionFailed); n != 1 {
					t.Errorf("%d failures, want 1", n)
				}
				if n := count(events, StreamEventTypeReasoningChunk); n != 0 {
					t.Error("the compactor's reasoning reached the parent stream")
				}
				wantRules(t, server)
			})
		})
	}
}

func TestContractCancelledCompactionGoesOnUnchanged(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		cancel := make(chan func(), 1)
		script := compactingTurn(func(*simulator.Request) simulator.Reply {
			return simulator.Fail(simulator.StallHeaders(nil, func() { (<-cancel)() }))
		})
		server, client := w.simulate(t, simulator.Options{Script: script, Window: 32768}, 32768)
		events := runTurnWith(t, t.Context(), client, parts(), func(e StreamEvent) {
			if e.Type == StreamEventTypeAutoCompactionStarted {
				cancel <- e.AutoCompaction.Cancel
			}
		}, user(task))
		wantDone(t, events)
		if n := count(events, StreamEventTypeAutoCompactionCancelled); n != 1 {
			t.Errorf("%d cancelled events, want 1", n)
		}
		parents := server.Records().Parents()
		if len(parents) != 3 || len(server.Records().Compactions()) != 1 {
			t.Fatalf("%d requests, %d compactions", len(parents), len(server.Records().Compactions()))
		}
		if r := parents[2].Request; r.Wrappers() != 0 || len(r.Results()) != 10 {
			t.Errorf("the request after it has %d wrappers and %d results", r.Wrappers(), len(r.Results()))
		}
		wantRules(t, server)
	})
}

func TestContractParentCancelEndsTheTurnWithinTheCompaction(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		ctx, cancel := context.WithCancel(t.Context())
		script := compactingTurn(func(*simulator.Request) simulator.Reply {
			return simulator.Fail(simulator.StallHeaders(nil, cancel))
		})
		_, client := w.simulate(t, simulator.Options{Script: script, Window: 32768}, 32768)
		events := runTurnWith(t, ctx, client, parts(), func(StreamEvent) {}, user(task))
		if end := last(events); end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, context.Canceled) {
			t.Errorf("ended with %s: %v", end.Type, end.Err)
		}
	})
}

func TestContractCancelMidStreamEndsTheTurn(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		ctx, cancel := context.WithCancel(t.Context())
		reply := simulator.Text("A long answer that never comes to its end.")
		reply.Fault = simulator.Stall(4, nil, cancel)
		_, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(reply), Window: 32768}, 32768)
		events := runTurnWith(t, ctx, client, parts(), func(StreamEvent) {}, user(task))
		if end := last(events); end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, context.Canceled) {
			t.Errorf("ended with %s: %v", end.Type, end.Err)
		}
	})
}

func TestContractInterruptedTurnIsContinuedWithItsWork(t *testing.T) {
	history := []Message{
		user(task),
		{Role: RoleAssistant, Content: "I read two files.", ToolActivities: []HistoricalToolActivity{
			{TextOffset: 17, Tool: "read_part", Input: json.RawMessage(`{"part":1}`), Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: "THE RAW OUTPUT"},
			{TextOffset: 17, Tool: "read_part", Input: json.RawMessage(`{"part":2}`), Status: tools.StatusCancelled, HasRawOutput: true, RawOutput: "The user interrupted the turn before this call ran; nothing was done."},
		}},
		user("Go on."),
	}
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(read(3), simulator.Text("Done.")), Window: 128000}, 128000)
		wantDone(t, runTurn(t, client, parts(), history...))
		raw := string(server.Records()[0].Request.Raw)
		for _, want := range []string{"THE RAW OUTPUT", "before this call ran", "Go on."} {
			if !strings.Contains(raw, want) {
				t.Errorf("the request lacks %q", want)
			}
		}
		wantRules(t, server)
	})
}

func TestContractReasoningIsReplayedInsideTheTurn(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		first := read(1)
		first.Reasoning, first.Text = "I have to read the first part before anything else.", "Reading."
		second := read(2)
		second.Reasoning = "And now the second one."
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(first, second, simulator.Text("Done.")), Window: 128000}, 128000)
		events := runTurn(t, client, parts(), user(task))
		wantDone(t, events)
		if n := count(events, StreamEventTypeReasoningChunk); n < 2 {
			t.Errorf("reasoning was shown in %d pieces", n)
		}
		wantRules(t, server)
		replays := map[string]bool{"responses": true, "codex": true, "anthropic": true, "bedrock": true}
		messages := server.Records()[2].Request.Messages
		if got := messages[1].Reasoning != ""; got != replays[w.name] {
			t.Errorf("reasoning is in the next request: %v, want %v", got, replays[w.name])
		}
	})
}

func TestContractRequestsExtendTheOneBefore(t *testing.T) {
	// Prompt caches work on equal prefixes: at least 95 % of the input of a
	// request is the request before, byte for byte.
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		var replies []simulator.Reply
		for i := range 12 {
			reply := read(i)
			reply.Text = fmt.Sprintf("Part %d.", i)
			replies = append(replies, reply)
		}
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(append(replies, simulator.Text("Done."))...), Window: 128000}, 128000)
		wantDone(t, runTurn(t, client, parts(), system("You are Keen. "+textOf(2000)), user(task)))
		records := server.Records()
		for i := 1; i < len(records); i++ {
			before, now := conversationBytes(t, records[i-1].Request.Raw), conversationBytes(t, records[i].Request.Raw)
			shared := 0
			for shared < len(before) && before[shared] == now[shared] {
				shared++
			}
			if shared < len(before)*95/100 {
				t.Errorf("request %d shares %d of the %d bytes of the one before", i+1, shared, len(before))
			}
		}
	})
}

// conversationBytes returns the part of a request that a prompt cache works
// on, in the order it is read: tools, system prompt, messages. Marks that only
// steer the cache are no part of it.
func conversationBytes(t *testing.T, raw []byte) []byte {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, key := range []string{"tools", "toolConfig", "system", "systemInstruction", "instructions", "messages", "contents", "input"} {
		all = append(all, strings.TrimSuffix(string(body[key]), "]")...)
	}
	text := strings.ReplaceAll(string(all), `,{"cachePoint":{"type":"default"}}`, "")
	return []byte(strings.TrimSuffix(text, "]}"))
}

func TestContractEqualInputMakesEqualRequests(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		script := simulator.ScriptFunc(func(*simulator.Request) simulator.Reply { return simulator.Text("Fine.") })
		server, client := w.simulate(t, simulator.Options{Script: script, Window: 128000}, 128000)
		registry := tools.NewRegistry(partTool{}, sizedTool{}, stepTool{})
		for range 4 {
			wantDone(t, runTurn(t, client, registry, system("You are Keen."), user("a"), Message{Role: RoleAssistant, Content: "b"}, user(task)))
		}
		records := server.Records()
		for _, r := range records[1:] {
			if diff := cmp.Diff(string(records[0].Request.Raw), string(r.Request.Raw)); diff != "" {
				t.Fatalf("equal turns made different requests:\n%s", diff)
			}
		}
	})
}

func TestContractUsageIsNormalised(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		reply := simulator.Text("Fine.")
		reply.Usage = &simulator.Usage{Input: 5000, Output: 300, Cached: 4000, Reasoning: 120}
		_, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(reply), Window: 128000}, 128000)
		events := runTurn(t, client, nil, user(task))
		want := Usage{InputTokens: 5000, OutputTokens: 300, CacheReadTokens: 4000, ReasoningTokens: 120}
		if w.name == "bedrock" {
			want.ReasoningTokens = 0 // It does not say.
		}
		for _, e := range events {
			if e.Type == StreamEventTypeUsage {
				if diff := cmp.Diff(want, *e.Usage); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				return
			}
		}
		t.Error("no usage was reported")
	})
}

func TestContractCutAnswerIsContinued(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		cut := simulator.Reply{Text: "The first half, ", Stop: simulator.StopLength}
		torn := simulator.Reply{Calls: []simulator.Call{{Name: "read_part", Input: `{"part":`}}, Stop: simulator.StopLength}
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(read(1), torn, cut, simulator.Text("the second half.")), Window: 128000}, 128000)
		events := runTurn(t, client, parts(), user(task))
		wantDone(t, events)
		if got := answerText(events); got != "The first half, the second half." {
			t.Errorf("the answer is %q", got)
		}
		if n := count(events, StreamEventTypeToolStarted); n != 1 {
			t.Errorf("%d calls were run, want 1: a torn call is none", n)
		}
		wantRules(t, server)
	})
}

func TestContractThreeCompactionsOverTwoTurns(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		script := marathon(30)
		server, client := w.simulate(t, simulator.Options{Script: script, Window: 32768}, 32768)
		events := runTurn(t, client, parts(), system("You are Keen."), user(task))
		wantDone(t, events)
		history := []Message{system("You are Keen.")}
		for _, e := range events {
			if e.Type == StreamEventTypeAutoCompactionApplied {
				history = append(history[:1], e.AutoCompaction.Replacement...)
			}
		}
		const next = "Now the next thirty."
		second := marathon(30)
		server2, client2 := w.simulate(t, simulator.Options{Script: second, Window: 32768}, 32768)
		events = runTurn(t, client2, parts(), append(history, Message{Role: RoleAssistant, Content: "All parts are done."}, user(next))...)
		wantDone(t, events)
		if a, b := len(server.Records().Compactions()), len(server2.Records().Compactions()); a < 2 || b < 1 {
			t.Fatalf("%d and %d compactions, want 2 and 1 or more", a, b)
		}
		for _, r := range server2.Records().Parents() {
			if r.Request.Wrappers() != 1 || !r.Request.Contains(next) {
				t.Errorf("request %d has %d wrappers, the task in it: %v", r.Request.Number, r.Request.Wrappers(), r.Request.Contains(next))
			}
		}
		wantRules(t, server)
		wantRules(t, server2)
	})
}
