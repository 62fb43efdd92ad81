package simulator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/simulator"
)

// scripted is a server that gives each of the replies once.
func scripted(t *testing.T, replies ...simulator.Reply) *client {
	t.Helper()
	return start(t, simulator.Options{Script: simulator.NewSequence(replies...)})
}

func TestWiresStreamAWholeAnswer(t *testing.T) {
	reply := simulator.Reply{
		Reasoning: "I should look at both files before I say <anything>.", Text: "Let me read both: äöü 日本語 \"quoted\" & more.\n\ndata: [DONE]\n\n",
		Calls: []simulator.Call{
			{Name: "read", Input: `{"path":"a.go","limit":10}`},
			{Name: "list", Input: `{"path":"a directory with a long name"}`},
		},
		ChunkBytes: 8,
	}
	through(t, doors, func(t *testing.T, d door) {
		got := scripted(t, reply).ask(d, d.hello)
		var calls []simulator.Call
		for i, call := range reply.Calls {
			if d.wire != simulator.WireGemini { // It has no ids.
				call.ID = fmt.Sprintf("call_1_%d", i+1)
			}
			calls = append(calls, call)
		}
		if got.Text != reply.Text || got.Reasoning != reply.Reasoning {
			t.Errorf("text %q, reasoning %q", got.Text, got.Reasoning)
		}
		if diff := cmp.Diff(calls, got.Calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if least := len(reply.Text)/8 + len(reply.Reasoning)/8; got.Events < least {
			t.Errorf("%d events, want at least %d", got.Events, least)
		}
		asked := d.wire != simulator.WireResponses && d.wire != simulator.WireCodex
		if got.Signature != "" != asked {
			t.Errorf("signature %q", got.Signature)
		}
	})
}

func TestWiresStreamAnEmptyAnswer(t *testing.T) {
	through(t, doors, func(t *testing.T, d door) {
		got := scripted(t, simulator.Reply{}).ask(d, d.hello)
		if got.Text != "" || got.Reasoning != "" || got.Calls != nil || got.Finish == "" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWiresSayWhyTheModelStopped(t *testing.T) {
	for wire, want := range map[simulator.Wire][]string{
		simulator.WireAnthropic: {"end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"},
		simulator.WireResponses: {"completed", "completed", "incompletemax_output_tokens", "incompletecontent_filter", "incompletepause_turn"},
		simulator.WireCodex:     {"completed", "completed", "incompletemax_output_tokens", "incompletecontent_filter", "incompletepause_turn"},
		simulator.WireGemini:    {"STOP", "STOP", "MAX_TOKENS", "SAFETY", "pause_turn"},
		simulator.WireBedrock:   {"end_turn", "tool_use", "max_tokens", "content_filtered", "pause_turn"},
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			for i, stop := range []simulator.Stop{simulator.StopEnd, simulator.StopToolCalls, simulator.StopLength, simulator.StopContentFilter, "pause_turn"} {
				if got := scripted(t, simulator.Reply{Text: "Hm.", Stop: stop}).ask(d, d.hello); got.Finish != want[i] {
					t.Errorf("%s: %q, want %q", stop, got.Finish, want[i])
				}
			}
		})
	}
}

func doorsOf(wire simulator.Wire) []door {
	var of []door
	for _, d := range doors {
		if d.wire == wire {
			of = append(of, d)
		}
	}
	return of
}

func TestAnOverflowAsAStopReasonFailsWhereThereIsNone(t *testing.T) {
	for wire, want := range map[simulator.Wire]string{
		simulator.WireAnthropic: "model_context_window_exceeded",
		simulator.WireBedrock:   "model_context_window_exceeded",
		simulator.WireResponses: "context_length_exceeded: Your input exceeds the context window of this model. Please adjust your input and try again.",
		simulator.WireCodex:     "context_length_exceeded: Your input exceeds the context window of this model. Please adjust your input and try again.",
		simulator.WireGemini:    "INVALID_ARGUMENT: The input token count (%d) exceeds the maximum number of tokens allowed (%d).",
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			c := scripted(t, simulator.Reply{Text: "Half", Stop: simulator.StopContextWindow})
			got := d.read(t, c.knock(d, marshal(t, d.hello), nil).body)
			if strings.Contains(want, "%d") {
				n := c.last().Request.InputTokens
				want = fmt.Sprintf(want, n, n-1)
			}
			if got.Finish+got.Failure != want {
				t.Errorf("finish %q, failure %q, want %q", got.Finish, got.Failure, want)
			}
		})
	}
}

func TestWiresReportUsageByTheirOwnRules(t *testing.T) {
	want := simulator.Usage{Input: 5000, Output: 300, Cached: 4000, Reasoning: 120}
	for wire, says := range map[simulator.Wire]string{
		simulator.WireAnthropic: `"cache_read_input_tokens":4000,"input_tokens":1000`, // beside
		simulator.WireResponses: `"input_tokens":5000,"input_tokens_details":{"cached_tokens":4000}`,
		simulator.WireCodex:     `"output_tokens":300,"output_tokens_details":{"reasoning_tokens":120}`,
		simulator.WireGemini:    `"cachedContentTokenCount":4000,"candidatesTokenCount":180,"promptTokenCount":5000,"thoughtsTokenCount":120`,
		simulator.WireBedrock:   `"cacheReadInputTokens":4000,"cacheWriteInputTokens":0,"inputTokens":1000,"outputTokens":300,"totalTokens":5300`,
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			c := scripted(t, simulator.Reply{Text: "Fine.", Usage: &want})
			r := c.knock(d, marshal(t, d.hello), nil)
			want := want
			if d.wire == simulator.WireBedrock {
				want.Reasoning = 0 // It does not say.
			}
			if got := d.read(t, r.body); got.Usage == nil || *got.Usage != want {
				t.Errorf("usage %+v", got.Usage)
			}
			if !strings.Contains(strings.ReplaceAll(r.body, `"cache_creation_input_tokens":0,`, ""), says) {
				t.Errorf("usage is not said as %s: %s", says, r.body)
			}
		})
	}
}

func TestWiresCountWhatTheyReport(t *testing.T) {
	through(t, doors, func(t *testing.T, d door) {
		c := start(t, simulator.Options{Script: simulator.NewSequence(simulator.Text("Fine, thank you.")), UsageFactor: 2})
		got, record := c.ask(d, d.hello), c.last()
		if got.Usage.Input != 2*record.Request.InputTokens || got.Usage.Output != record.OutputTokens || record.OutputTokens == 0 {
			t.Errorf("usage %+v of %d and %d", got.Usage, record.Request.InputTokens, record.OutputTokens)
		}
		c = start(t, simulator.Options{Usage: simulator.UsageOff})
		if got := c.ask(d, d.hello).Usage; got != nil && *got != (simulator.Usage{}) {
			t.Errorf("switched off: %+v", got)
		}
	})
}

func TestWiresCutAnAnswerAtItsLimit(t *testing.T) {
	long := strings.Repeat("A sentence of some words. ", 40)
	call := simulator.Calls(simulator.Call{Name: "read", Input: `{"path":"` + strings.Repeat("a/b/", 100) + `"}`})
	through(t, doors, func(t *testing.T, d door) {
		o := simulator.Options{Script: simulator.NewSequence(simulator.Text(long), call), MaxOutput: 20}
		c, hello := start(t, o), d.hello
		if d.limit != nil {
			o.MaxOutput = 0
			c, hello = start(t, o), d.withLimit(20)
		}
		got := c.ask(d, hello)
		if !strings.HasPrefix(long, got.Text) || got.Text == "" || len(got.Text) == len(long) || !c.last().Cut {
			t.Errorf("text %q, cut %v", got.Text, c.last().Cut)
		}
		if !strings.Contains(strings.ToLower(got.Finish), "max_") {
			t.Errorf("finish %q", got.Finish)
		}
		got = c.ask(d, hello)
		if d.wire == simulator.WireGemini { // It sends calls whole or not at all.
			if got.Calls != nil {
				t.Errorf("calls %+v", got.Calls)
			}
			return
		}
		if len(got.Calls) != 1 || json.Valid([]byte(got.Calls[0].Input)) || !strings.HasPrefix(call.Calls[0].Input, got.Calls[0].Input) {
			t.Errorf("calls %+v", got.Calls)
		}
	})
}

func TestAMalformedCallIsSentAsItIs(t *testing.T) {
	through(t, doors, func(t *testing.T, d door) {
		got := scripted(t, simulator.Calls(simulator.Call{Name: "read", Input: `{"path":`}, simulator.Call{Name: "read"})).ask(d, d.hello)
		if d.wire == simulator.WireGemini {
			if got.Calls != nil || got.Finish != "MALFORMED_FUNCTION_CALL" {
				t.Errorf("got %+v", got)
			}
			return
		}
		if len(got.Calls) != 2 || got.Calls[0].Input != `{"path":` || got.Calls[1].Input != "" {
			t.Errorf("calls %+v", got.Calls)
		}
	})
}

func TestWiresFailInsideTheStream(t *testing.T) {
	failures := map[simulator.Wire]string{
		simulator.WireAnthropic: "api_error: Internal server error",
		simulator.WireResponses: "server_error: The server had an error while processing your request.",
		simulator.WireCodex:     "server_error: The server had an error while processing your request.",
		simulator.WireGemini:    "INTERNAL: An internal error has occurred. Please retry or report.",
		simulator.WireBedrock:   "internalServerException: The system encountered an unexpected error during processing. Try your request again.",
	}
	overflows := map[simulator.Wire]string{
		simulator.WireAnthropic: "invalid_request_error: prompt is too long: ",
		simulator.WireResponses: "context_length_exceeded: Your input exceeds the context window",
		simulator.WireCodex:     "context_length_exceeded: Your input exceeds the context window",
		simulator.WireGemini:    "INVALID_ARGUMENT: The input token count (",
		simulator.WireBedrock:   "validationException: The model returned the following errors: prompt is too long: ",
	}
	for name, c := range map[string]struct {
		fault *simulator.Fault
		// events is how many are sent, -1 stands for all the content.
		events int
		err    error
		says   map[simulator.Wire]string
	}{
		"ends early":         {simulator.EndEarly(3), 3, nil, nil},
		"ends before it is":  {simulator.EndEarly(0), 0, nil, nil},
		"ends after content": {simulator.EndEarly(simulator.AfterContent), -1, nil, nil},
		"dropped":            {simulator.Drop(3), 3, io.ErrUnexpectedEOF, nil},
		"reset":              {simulator.Reset(3), 3, syscall.ECONNRESET, nil},
		"an error":           {simulator.StreamError(2, ""), 3, nil, failures},
		"an overflow":        {simulator.StreamOverflow(2), 3, nil, overflows},
	} {
		t.Run(name, func(t *testing.T) {
			through(t, doors, func(t *testing.T, d door) {
				server := start(t, simulator.Options{Script: faulty(c.fault)})
				r := server.knock(d, marshal(t, d.hello), nil)
				if r.status != http.StatusOK || !errors.Is(r.err, c.err) {
					t.Fatalf("status %d, error %v, want %v", r.status, r.err, c.err)
				}
				got := d.read(t, r.body)
				if c.events >= 0 && got.Events != c.events || got.End {
					t.Errorf("%d events, want %d; ended %v", got.Events, c.events, got.End)
				}
				if c.events < 0 && (got.Text != server.last().Reply.Text || got.Finish != "") {
					t.Errorf("text %q, finish %q", got.Text, got.Finish)
				}
				if want := c.says[d.wire]; !strings.HasPrefix(got.Failure, want) || got.Failure != "" != (want != "") {
					t.Errorf("failure %q, want %q", got.Failure, want)
				}
			})
		})
	}
}

func TestWiresAnswerWithAStatus(t *testing.T) {
	for wire, says := range map[simulator.Wire]map[int]string{
		simulator.WireAnthropic: {
			401: `"authentication_error"`, 402: `"billing_error"`, 403: `"permission_error"`, 404: `"not_found_error"`, 413: `"request_too_large"`, 418: `"invalid_request_error"`,
			429: `"rate_limit_error"`, 500: `"api_error"`, 503: `"api_error"`, 504: `"timeout_error"`, 529: `"overloaded_error"`,
		},
		simulator.WireResponses: {
			401: `"invalid_api_key"`, 404: `"model_not_found"`, 418: "teapot", 429: `"rate_limit_exceeded"`, 500: `"server_error"`, 503: `"server_is_overloaded"`, 529: `"server_is_overloaded"`,
		},
		simulator.WireCodex: {401: `"token_expired"`, 429: `"rate_limit_exceeded"`, 500: `"server_error"`},
		simulator.WireGemini: {
			401: `"UNAUTHENTICATED"`, 403: `"PERMISSION_DENIED"`, 404: `"NOT_FOUND"`, 418: `"INVALID_ARGUMENT"`, 429: `"RESOURCE_EXHAUSTED"`, 500: `"INTERNAL"`, 503: `"UNAVAILABLE"`,
			504: `"DEADLINE_EXCEEDED"`, 529: `"UNAVAILABLE"`,
		},
		simulator.WireBedrock: {
			403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException", 418: "ValidationException", 424: "ModelErrorException",
			429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException", 529: "ServiceUnavailableException",
		},
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			for status, want := range says {
				c := scripted(t, simulator.Fail(simulator.HTTPError(status)))
				r := c.knock(d, marshal(t, d.hello), nil)
				if errorMessage(t, d, r) == "" || r.status != status || c.last().Status != status {
					t.Errorf("%d: status %d, recorded %d: %s", status, r.status, c.last().Status, r.body)
				}
				if !strings.Contains(r.header.Get("X-Amzn-Errortype")+r.body, want) {
					t.Errorf("%d: no %s in %s", status, want, r.body)
				}
			}
		})
	}
}

func TestWiresKnowTheWindow(t *testing.T) {
	// The input alone, and the input with what is asked for, exceed it.
	long := strings.Repeat("word ", 400)
	for wire, c := range map[simulator.Wire]struct {
		body         object
		input, total string
	}{
		simulator.WireAnthropic: {
			anthropicRequest(say("user", long)),
			"prompt is too long: %[1]d tokens > 300 maximum",
			"input length and `max_tokens` exceed context limit: %[1]d + 1000 > %[2]d, decrease input length or `max_tokens` and try again",
		},
		simulator.WireResponses: {
			with(responsesRequest(say("user", long)), "max_output_tokens", 1000),
			"This model's maximum context length is 300 tokens. However, you requested %[3]d tokens (%[1]d in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
			"This model's maximum context length is %[2]d tokens. However, you requested %[3]d tokens (%[1]d in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
		},
		simulator.WireGemini: {
			with(geminiRequest(geminiText("user", long)), "generationConfig", object{"maxOutputTokens": 1000}),
			"The input token count (%[1]d) exceeds the maximum number of tokens allowed (300).",
			"The input token count (%[3]d) exceeds the maximum number of tokens allowed (%[2]d).",
		},
		simulator.WireBedrock: {
			with(bedrockRequest(bedrockTurn("user", object{"text": long})), "inferenceConfig", object{"maxTokens": 1000}),
			"The model returned the following errors: prompt is too long: %[1]d tokens > 300 maximum",
			"The model returned the following errors: input length and `max_tokens` exceed context limit: %[1]d + 1000 > %[2]d, decrease input length or `max_tokens` and try again",
		},
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			const window = 900
			for limit, want := range map[int]string{300: c.input, window: c.total} {
				server := start(t, simulator.Options{Window: limit})
				r := server.knock(d, marshal(t, c.body), nil)
				record := server.last()
				n := record.Request.InputTokens
				want = fmt.Sprintf(want, n, window, n+1000)
				if got := errorMessage(t, d, r); r.status != http.StatusBadRequest || got != want {
					t.Errorf("status %d, message\n got %s\nwant %s", r.status, got, want)
				}
				if record.Verdict != simulator.RejectedWindow || !record.OverWindow {
					t.Errorf("verdict %q", record.Verdict)
				}
			}
		})
	}
}

func TestWiresKnowTheOutputLimit(t *testing.T) {
	for wire, want := range map[simulator.Wire]string{
		simulator.WireAnthropic: "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for this model",
		simulator.WireResponses: "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 8192, but got 9000 instead.",
		simulator.WireGemini:    "Unable to submit request because it has a maxOutputTokens value of 9000 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
		simulator.WireBedrock:   "The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value that is lower than 8192.",
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			c := start(t, simulator.Options{MaxOutput: 8192})
			r := c.knock(d, marshal(t, d.withLimit(9000)), nil)
			if got := errorMessage(t, d, r); r.status != http.StatusBadRequest || got != want || c.last().Verdict != simulator.RejectedOutput {
				t.Errorf("status %d, verdict %q: %s", r.status, c.last().Verdict, got)
			}
			c.ask(d, d.withLimit(8192))
			if got := c.last().Request.MaxOutput; got != 8192 {
				t.Errorf("%d output tokens are asked for", got)
			}
		})
	}
}

func TestWiresWantTheirKey(t *testing.T) {
	type answer struct {
		status      int
		none, wrong string
	}
	for wire, want := range map[simulator.Wire]answer{
		simulator.WireAnthropic: {401, "x-api-key header is required", "invalid x-api-key"},
		simulator.WireResponses: {401, "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).", "Incorrect API key provided"},
		simulator.WireCodex:     {401, "Unauthorized", "Provided authentication token is expired. Please try signing in again."},
		simulator.WireGemini:    {403, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.", "API key not valid. Please pass a valid API key."},
		simulator.WireBedrock:   {403, "Missing Authentication Token", "The security token included in the request is invalid."},
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			c := start(t, simulator.Options{Key: "secret"})
			send := func(key string) response {
				return c.knock(d, marshal(t, d.hello), func(r *http.Request) {
					if name, value, _ := strings.Cut(d.key, ": "); key != "" {
						r.Header.Set(name, fmt.Sprintf(value, key))
					}
				})
			}
			if r := send(""); r.status != want.status || errorMessage(t, d, r) != want.none {
				t.Errorf("no key: status %d: %s", r.status, r.body)
			}
			status := want.status
			if d.wire == simulator.WireGemini {
				status = http.StatusBadRequest
			}
			if r := send("other"); r.status != status || errorMessage(t, d, r) != want.wrong || c.last().Verdict != simulator.RejectedKey {
				t.Errorf("wrong key: status %d, verdict %q: %s", r.status, c.last().Verdict, r.body)
			}
			if r := send("secret"); r.status != http.StatusOK || !d.read(t, r.body).End {
				t.Errorf("the key: status %d: %s", r.status, r.body)
			}
		})
	}
}

func TestKeysAreTakenFromWhereClientsPutThem(t *testing.T) {
	c := start(t, simulator.Options{Key: "secret"})
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }
	query := func(r *http.Request) { r.URL.RawQuery = "alt=sse&key=secret" }
	for name, k := range map[string]struct {
		door   door
		change func(*http.Request)
	}{
		"a bearer token for Anthropic": {anthropicDoor, bearer},
		"a bearer token for Bedrock":   {bedrockDoor, bearer},
		"Gemini's key in the address":  {geminiDoor, query},
	} {
		if r := c.knock(k.door, marshal(t, k.door.hello), k.change); r.status != http.StatusOK {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
}

func TestWiresServeOnlyTheirModel(t *testing.T) {
	for wire, model := range map[simulator.Wire]string{
		simulator.WireAnthropic: "m", simulator.WireResponses: "m", simulator.WireCodex: "m", simulator.WireGemini: "gemini-3-pro", simulator.WireBedrock: "claude:0",
	} {
		through(t, doorsOf(wire), func(t *testing.T, d door) {
			start(t, simulator.Options{Model: model}).ask(d, d.hello)
			if r := start(t, simulator.Options{Model: "another"}).knock(d, marshal(t, d.hello), nil); r.status != http.StatusNotFound {
				t.Errorf("status %d: %s", r.status, r.body)
			}
		})
	}
}

func TestWiresRefuseBytesThatAreNoRequest(t *testing.T) {
	through(t, doors, func(t *testing.T, d door) {
		c := start(t, simulator.Options{})
		bodies := map[string][]byte{
			"nothing": nil, "torn": marshal(t, d.hello)[:40], "a list": []byte("[]"), "null": []byte("null"), "no object": []byte("{}"),
			"invalid UTF-8": []byte(strings.Replace(string(marshal(t, d.hello)), "Hello.", "Hello\xff", 1)),
			"a wrong type":  []byte(`{"messages":1,"input":1,"contents":1}`),
		}
		for name, body := range bodies {
			if r := c.knock(d, body, nil); r.status != http.StatusBadRequest || errorMessage(t, d, r) == "" {
				t.Errorf("%s: status %d: %s", name, r.status, r.body)
			}
		}
		if got := len(c.server.Records().Rejected()); got != len(bodies) {
			t.Errorf("%d rejected requests", got)
		}
	})
}
