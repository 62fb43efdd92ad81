package simulator

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// fuzzParse feeds bytes to the parser of a wire. Whatever they are, it must
// judge them: a request that passes can be counted and answered, one that does
// not is refused in JSON.
func fuzzParse(f *testing.F, w wire, path string, header http.Header, seeds ...string) {
	for _, seed := range append(seeds, "", "null", "[]", "{}") {
		f.Add([]byte(seed))
	}
	tokens := newCounter(nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header = header
		if !w.matches(r) {
			t.Fatalf("%s is not for this wire", path)
		}
		request, p := w.parse(r, body)
		request.Raw = body
		if request.MaxOutput < 0 || tokens.input(request) <= 0 {
			t.Errorf("%d output tokens, %d of input", request.MaxOutput, tokens.input(request))
		}
		if p != nil {
			rejected := w.reject(*p)
			if p.message == "" || rejected.status < 400 || rejected.status > 499 || !json.Valid([]byte(rejected.body)) {
				t.Errorf("problem %+v, status %d: %s", p, rejected.status, rejected.body)
			}
			return
		}
		if len(request.Messages) == 0 || !json.Valid(body) || !utf8.Valid(body) {
			t.Errorf("%q is taken with %d messages", body, len(request.Messages))
		}
		checkEvents(t, w, answer{request: request, reply: Text("Fine.").complete(1)})
	})
}

// checkEvents fails for events that do not hold one JSON object each.
func checkEvents(t *testing.T, w wire, a answer) {
	t.Helper()
	events := w.events(a)
	for i, e := range events {
		if !json.Valid(payload(t, w, e.data)) {
			t.Errorf("event %d is %q", i, e.data)
		}
		if last := i == len(events)-1; last && e.part != eventEnd {
			t.Errorf("the last event is of the content: %q", e.data)
		}
	}
	if len(events) == 0 {
		t.Error("no events")
	}
}

// payload takes the data out of an event.
func payload(t *testing.T, w wire, data []byte) []byte {
	t.Helper()
	if w.contentType() == (bedrockWire{}).contentType() {
		from := bytes.NewReader(data)
		m, err := eventstream.NewDecoder().Decode(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rest, _ := io.ReadAll(from); len(rest) > 0 {
			t.Errorf("%d bytes behind the frame", len(rest))
		}
		return m.Payload
	}
	_, after, ok := bytes.Cut(data, []byte("data: "))
	after, ended := bytes.CutSuffix(after, []byte("\n\n"))
	if !ok || !ended || bytes.ContainsAny(after, "\r\n") {
		t.Errorf("not an event: %q", data)
	}
	return after
}

func FuzzAnthropic(f *testing.F) {
	fuzzParse(f, anthropicWire{}, "/v1/messages", http.Header{"Anthropic-Version": {"2023-06-01"}},
		`{"model":"m","max_tokens":2000,"stream":true,"system":[{"type":"text","text":"s"}],"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]}`,
		`{"model":"m","max_tokens":2000,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":[{"type":"image"}]}],"cache_control":{}}`,
		`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":[null,{"type":"tool_result","content":[null]}]}],"tools":[null,1]}`)
}

func FuzzResponses(f *testing.F) {
	fuzzParse(f, responsesWire{}, "/v1/responses", nil,
		`{"model":"m","stream":true,"input":"a","tools":[{"type":"function","name":"t","parameters":{"type":"object"}}],"include":["reasoning.encrypted_content"]}`,
		`{"model":"m","stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"t","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}`,
		`{"model":"m","stream":true,"input":[{"type":"reasoning","id":"rs","summary":[{"text":"s"}],"encrypted_content":"e"},{"role":"assistant","id":"msg_from_rs","content":"a"},null]}`)
}

func FuzzCodex(f *testing.F) {
	header := http.Header{"Chatgpt-Account-Id": {"a"}, "Originator": {"o"}, "Openai-Beta": {"b"}}
	fuzzParse(f, responsesWire{codex: true}, "/backend-api/codex/responses", header,
		`{"model":"m","stream":true,"store":false,"instructions":"i","input":[{"role":"user","content":"a"}]}`,
		`{"model":"m","stream":true,"store":false,"instructions":"i","input":"a"}`)
}

func FuzzGemini(f *testing.F) {
	fuzzParse(f, geminiWire{}, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", nil,
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"t","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"t","response":{"output":"r"}}}]}],"tools":[{"functionDeclarations":[{"name":"t"}]}]}`,
		`{"systemInstruction":{"parts":[{"text":"s"},null]},"contents":[{"parts":[{"inlineData":{}}]}],"generationConfig":{"maxOutputTokens":5}}`,
		`{"contents":[null,{"role":"model","parts":[null]}],"tools":[null]}`)
}

func FuzzBedrock(f *testing.F) {
	fuzzParse(f, bedrockWire{}, "/model/claude%3A0/converse-stream", nil,
		`{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"t","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"r"}]}},{"cachePoint":{}}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"t","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{}}]}}`,
		`{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"a"}]}],"inferenceConfig":{"maxTokens":2000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}}}`,
		`{"messages":[{"role":"user","content":[null,{"reasoningContent":{}},{"toolResult":{"content":[null]}}]}],"toolConfig":{"tools":[null]}}`)
}

// FuzzAnswers renders answers that say anything on all wires.
func FuzzAnswers(f *testing.F) {
	f.Add("I look.", "Fine.", "read", `{"path":"a"}`, "end", 8)
	f.Add("", "a\r\n\ndata: x\n\n", "", "{", "length", 0)
	f.Add("\xff", "\x00", "\xff", "", "context_window", -1)
	f.Fuzz(func(t *testing.T, reasoning, text, name, input, stop string, size int) {
		reply := Reply{Reasoning: reasoning, Text: text, Calls: []Call{{Name: name, Input: input}, {Name: name}}, Stop: Stop(stop), ChunkBytes: size}
		for _, w := range wires(Options{})[1:] { // Chat ends with a text.
			request := &Request{Number: 1, Raw: []byte(`{"include":["reasoning.encrypted_content"]}`)}
			checkEvents(t, w, answer{request: request, reply: reply.complete(1), usage: &Usage{Input: 3, Output: 2, Cached: 1}})
			if failed := w.failure(problem{kind: problemWindow, input: 2, limit: 1}); !json.Valid(payload(t, w, failed.data)) {
				t.Errorf("failure %q", failed.data)
			}
		}
	})
}
