package simulator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"keen/internal/simulator"
)

// door is how raw requests reach a wire, and what comes back from it.
type door struct {
	wire   simulator.Wire
	path   string
	header map[string]string
	// key is the header of the key, with the key as %s.
	key string
	// hello is the smallest request that the wire takes, limit the place of
	// the output limit in it.
	hello object
	limit []string
	// read puts an answer together and fails for one that is not well formed.
	read func(t *testing.T, body string) heard
}

// heard is an answer put together from its events.
type heard struct {
	Reasoning, Text, Finish string
	Calls                   []simulator.Call
	Usage                   *simulator.Usage
	// Signature belongs to the reasoning, or on Gemini to the first call.
	Signature string
	// ID is that of the reasoning on Responses, Follower that of the item
	// after it.
	ID, Follower string
	// Events counts all events; End says that the last ended the answer.
	Events int
	End    bool
	// Failure is an error inside the stream.
	Failure string
}

var (
	anthropicDoor = door{
		wire: simulator.WireAnthropic, path: "/v1/messages", key: "X-Api-Key: %s", header: map[string]string{"Anthropic-Version": "2023-06-01"},
		hello: anthropicRequest(say("user", "Hello.")), limit: []string{"max_tokens"}, read: readAnthropic,
	}
	responsesDoor = door{
		wire: simulator.WireResponses, path: "/v1/responses", key: "Authorization: Bearer %s",
		hello: responsesRequest(say("user", "Hello.")), limit: []string{"max_output_tokens"}, read: readResponses,
	}
	codexDoor = door{
		wire: simulator.WireCodex, path: "/backend-api/codex/responses", key: "Authorization: Bearer %s",
		header: map[string]string{"Chatgpt-Account-Id": "account", "Originator": "keen", "Openai-Beta": "responses=experimental"},
		hello:  codexRequest(say("user", "Hello.")), read: readResponses,
	}
	geminiDoor = door{
		wire: simulator.WireGemini, path: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", key: "X-Goog-Api-Key: %s",
		hello: geminiRequest(geminiText("user", "Hello.")), limit: []string{"generationConfig", "maxOutputTokens"}, read: readGemini,
	}
	bedrockDoor = door{
		wire: simulator.WireBedrock, path: "/model/claude%3A0/converse-stream", key: "Authorization: AWS4-HMAC-SHA256 Credential=%s/20260101/us-east-1/bedrock/aws4_request, Signature=x",
		hello: bedrockRequest(bedrockTurn("user", object{"text": "Hello."})), limit: []string{"inferenceConfig", "maxTokens"}, read: readBedrock,
	}
	doors = []door{anthropicDoor, responsesDoor, codexDoor, geminiDoor, bedrockDoor}
)

// through runs a test at each of some doors.
func through(t *testing.T, at []door, run func(t *testing.T, d door)) {
	t.Helper()
	for _, d := range at {
		t.Run(string(d.wire), func(t *testing.T) { run(t, d) })
	}
}

// knock sends a body through a door; change may change the request before.
func (c *client) knock(d door, body []byte, change func(*http.Request)) response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.server.URL()+d.path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range d.header {
		r.Header.Set(name, value)
	}
	if change != nil {
		change(r)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return response{err: err}
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return response{status: answer.StatusCode, header: answer.Header, body: string(text), err: err}
}

// ask sends a request through a door and returns what is heard, which must be
// a whole answer.
func (c *client) ask(d door, body object) heard {
	c.t.Helper()
	r := c.knock(d, marshal(c.t, body), nil)
	if r.status != http.StatusOK || r.err != nil {
		c.t.Fatalf("status %d, %v: %s", r.status, r.err, r.body)
	}
	got := d.read(c.t, r.body)
	if !got.End || got.Failure != "" {
		c.t.Fatalf("the answer is not whole: %s", r.body)
	}
	return got
}

// withLimit asks for so many output tokens.
func (d door) withLimit(n int) object {
	if len(d.limit) == 2 {
		return with(d.hello, d.limit[0], object{d.limit[1]: n})
	}
	return with(d.hello, d.limit[0], n)
}

// takes and refuses are the two halves of a rule.
func takes(t *testing.T, d door, bodies map[string]object) {
	t.Helper()
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			c := start(t, simulator.Options{})
			c.ask(d, body)
			if got := c.last(); got.Verdict != simulator.Accepted || got.Reason != "" || got.Request.Wire != d.wire {
				t.Errorf("verdict %q on wire %s: %s", got.Verdict, got.Request.Wire, got.Reason)
			}
		})
	}
}

// refusal is a body and what its provider says to it.
type refusal struct {
	body object
	says string
}

func refuses(t *testing.T, d door, cases map[string]refusal) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := start(t, simulator.Options{})
			r := server.knock(d, marshal(t, c.body), nil)
			if r.status != http.StatusBadRequest {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			if got := errorMessage(t, d, r); got != c.says {
				t.Errorf("message\n got %s\nwant %s", got, c.says)
			}
			record := server.last()
			if record.Verdict != simulator.RejectedRule || record.Reason != r.body || record.Status != r.status {
				t.Errorf("record: %q, status %d, %s", record.Verdict, record.Status, record.Reason)
			}
		})
	}
}

// errorMessage returns the message of a rejection, whose form must be that of
// the provider.
func errorMessage(t *testing.T, d door, r response) string {
	t.Helper()
	var e struct {
		Type    string
		Message string
		Detail  string
		Error   *struct {
			Type, Message, Status string
			Code                  any
		}
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	switch {
	case d.wire == simulator.WireBedrock:
		if r.header.Get("X-Amzn-Errortype") == "" || e.Error != nil {
			t.Errorf("not an error of AWS: %v %s", r.header, r.body)
		}
		return e.Message
	case d.wire == simulator.WireCodex && e.Detail != "":
		return e.Detail
	case e.Error == nil:
		t.Fatalf("no error in %s", r.body)
	case d.wire == simulator.WireAnthropic && (e.Type != "error" || e.Error.Type == ""):
		t.Errorf("not an error of Anthropic: %s", r.body)
	case d.wire == simulator.WireGemini && (e.Error.Code != float64(r.status) || e.Error.Status == ""):
		t.Errorf("not an error of Google: %s", r.body)
	}
	return e.Error.Message
}

// sseEvent is a server-sent event.
type sseEvent struct {
	name string
	data []byte
}

// readSSE reads server-sent events, which must be well formed to the last.
func readSSE(t *testing.T, body string) []sseEvent {
	t.Helper()
	var events []sseEvent
	for _, text := range strings.SplitAfter(body, "\n\n") {
		if text == "" {
			continue
		}
		rest, ended := strings.CutSuffix(text, "\n\n")
		var e sseEvent
		if line, after, ok := strings.Cut(rest, "\n"); ok {
			name, named := strings.CutPrefix(line, "event: ")
			if !named {
				t.Fatalf("not an event: %q", text)
			}
			e.name, rest = name, after
		}
		data, ok := strings.CutPrefix(rest, "data: ")
		if !ok || !ended || strings.Contains(data, "\n") {
			t.Fatalf("not an event: %q", text)
		}
		e.data = []byte(data)
		events = append(events, e)
	}
	return events
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("read %s: %v", data, err)
	}
}

func readAnthropic(t *testing.T, body string) heard {
	t.Helper()
	var h heard
	open, next := -1, 0
	var last string
	for _, e := range readSSE(t, body) {
		var v struct {
			Type    string
			Index   int
			Message struct {
				Usage struct {
					Input    int `json:"input_tokens"`
					Cached   int `json:"cache_read_input_tokens"`
					Creation int `json:"cache_creation_input_tokens"`
				}
			}
			Block struct{ Type, ID, Name string } `json:"content_block"`
			Delta struct {
				Type, Text, Thinking, Signature string
				Partial                         string  `json:"partial_json"`
				Stop                            *string `json:"stop_reason"`
			}
			Usage struct {
				Output  int `json:"output_tokens"`
				Details struct {
					Thinking int `json:"thinking_tokens"`
				} `json:"output_tokens_details"`
			}
			Error struct{ Type, Message string }
		}
		decode(t, e.data, &v)
		if v.Type != e.name || h.End || h.Events == 0 && v.Type != "message_start" && v.Type != "error" {
			t.Fatalf("event %s with type %s after %d others", e.name, v.Type, h.Events)
		}
		h.Events++
		switch v.Type {
		case "message_start":
			u := v.Message.Usage
			h.Usage = &simulator.Usage{Input: u.Input + u.Cached + u.Creation, Cached: u.Cached}
		case "ping":
		case "content_block_start":
			if open != -1 || v.Index != next {
				t.Fatalf("block %d starts after %d while %d is open", v.Index, next-1, open)
			}
			open, next = v.Index, v.Index+1
			if v.Block.Type == "tool_use" {
				h.Calls = append(h.Calls, simulator.Call{ID: v.Block.ID, Name: v.Block.Name})
			}
		case "content_block_delta":
			if v.Index != open {
				t.Fatalf("a delta of block %d while %d is open", v.Index, open)
			}
			h.Text += v.Delta.Text
			h.Reasoning += v.Delta.Thinking
			h.Signature += v.Delta.Signature
			if v.Delta.Type == "input_json_delta" {
				h.Calls[len(h.Calls)-1].Input += v.Delta.Partial
			}
		case "content_block_stop":
			open = -1
		case "message_delta":
			h.Finish = *v.Delta.Stop
			h.Usage.Output, h.Usage.Reasoning = v.Usage.Output, v.Usage.Details.Thinking
		case "message_stop":
			h.End = last == "message_delta" && open == -1
		case "error":
			h.Failure = v.Error.Type + ": " + v.Error.Message
		default:
			t.Fatalf("an unknown event: %s", v.Type)
		}
		last = v.Type
	}
	return h
}

// responsesEvent is an event of Responses as a client reads it.
type responsesEvent struct {
	Type     string
	Sequence int `json:"sequence_number"`
	Index    int `json:"output_index"`
	Delta    string
	Text     string
	Input    string `json:"arguments"`
	Item     struct {
		Type, ID, Name, Status string
		CallID                 string `json:"call_id"`
		Encrypted              string `json:"encrypted_content"`
		Arguments              string
	}
	Response struct {
		Output     []json.RawMessage
		Incomplete struct{ Reason string } `json:"incomplete_details"`
		Error      struct{ Code, Message string }
		Usage      *struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
			Total  int `json:"total_tokens"`
			Cached struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			Thought struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}
	}
}

func readResponses(t *testing.T, body string) heard {
	t.Helper()
	var h heard
	items, said := 0, ""
	for _, e := range readSSE(t, body) {
		var v responsesEvent
		decode(t, e.data, &v)
		failed := v.Type == "response.failed"
		if v.Type != e.name || h.End || !failed && v.Sequence != h.Events || v.Index != 0 && v.Index != items {
			t.Fatalf("event %d is %s", h.Events, e.data)
		}
		h.Events++
		switch v.Type {
		case "response.output_text.delta", "response.reasoning_summary_text.delta", "response.function_call_arguments.delta":
			said += v.Delta
		case "response.output_text.done":
			h.Text, said = h.Text+said, said+"!"
		case "response.reasoning_summary_text.done":
			h.Reasoning, said = h.Reasoning+said, said+"!"
		case "response.function_call_arguments.done":
			said += "!"
		case "response.output_item.added":
			said = ""
		case "response.output_item.done":
			items++
			h.item(v)
		case "response.failed":
			h.Failure = v.Response.Error.Code + ": " + v.Response.Error.Message
		case "response.completed", "response.incomplete":
			h.Finish, h.End = strings.TrimPrefix(v.Type, "response.")+v.Response.Incomplete.Reason, true
			if len(v.Response.Output) != items || v.Response.Output == nil {
				t.Errorf("%d items at the end of %d", len(v.Response.Output), items)
			}
			if u := v.Response.Usage; u != nil {
				h.Usage = &simulator.Usage{Input: u.Input, Output: u.Output, Cached: u.Cached.Cached, Reasoning: u.Thought.Reasoning}
				if u.Total != u.Input+u.Output {
					t.Errorf("usage %+v", u)
				}
			}
		}
		if strings.HasSuffix(v.Type, "_text.done") && v.Text+"!" != said || strings.HasSuffix(v.Type, "arguments.done") && v.Input+"!" != said {
			t.Errorf("%s of %q", e.data, said)
		}
	}
	return h
}

func (h *heard) item(v responsesEvent) {
	switch v.Item.Type {
	case "reasoning":
		h.ID, h.Signature = v.Item.ID, v.Item.Encrypted
		return
	case "function_call":
		h.Calls = append(h.Calls, simulator.Call{ID: v.Item.CallID, Name: v.Item.Name, Input: v.Item.Arguments})
	}
	if h.Follower == "" {
		h.Follower = v.Item.ID
	}
}

func readGemini(t *testing.T, body string) heard {
	t.Helper()
	var h heard
	for _, e := range readSSE(t, body) {
		var v struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						Text      string
						Thought   bool
						Signature string `json:"thoughtSignature"`
						Call      *struct {
							Name string
							Args json.RawMessage
						} `json:"functionCall"`
					}
				}
				Finish string `json:"finishReason"`
			}
			Usage *struct {
				Prompt     int `json:"promptTokenCount"`
				Candidates int `json:"candidatesTokenCount"`
				Thoughts   int `json:"thoughtsTokenCount"`
				Cached     int `json:"cachedContentTokenCount"`
				Total      int `json:"totalTokenCount"`
			} `json:"usageMetadata"`
			Error struct{ Status, Message string }
		}
		decode(t, e.data, &v)
		if e.name != "" || h.End {
			t.Fatalf("event %d is %s", h.Events, e.data)
		}
		h.Events++
		if v.Error.Status != "" {
			h.Failure = v.Error.Status + ": " + v.Error.Message
		}
		for _, c := range v.Candidates {
			h.Finish, h.End = c.Finish, c.Finish != ""
			for _, p := range c.Content.Parts {
				switch {
				case p.Call != nil:
					h.Calls = append(h.Calls, simulator.Call{Name: p.Call.Name, Input: string(p.Call.Args)})
					h.Signature += p.Signature
				case p.Thought:
					h.Reasoning += p.Text
				default:
					h.Text += p.Text
				}
			}
		}
		if u := v.Usage; u != nil {
			h.Usage = &simulator.Usage{Input: u.Prompt, Output: u.Candidates + u.Thoughts, Cached: u.Cached, Reasoning: u.Thoughts}
			if u.Total != u.Prompt+u.Candidates+u.Thoughts {
				t.Errorf("usage %+v", u)
			}
		}
	}
	return h
}

func readBedrock(t *testing.T, body string) heard {
	t.Helper()
	var h heard
	open, next := -1, 0
	decoder, from := eventstream.NewDecoder(), strings.NewReader(body)
	for {
		m, err := decoder.Decode(from, nil)
		if errors.Is(err, io.EOF) {
			return h
		}
		if err != nil {
			t.Fatalf("frame %d: %v", h.Events, err)
		}
		h.Events++
		var v struct {
			Role  string
			Index int `json:"contentBlockIndex"`
			Start struct {
				Use *struct{ Name, ToolUseID string } `json:"toolUse"`
			}
			Delta struct {
				Text      string
				Use       *struct{ Input string }          `json:"toolUse"`
				Reasoning struct{ Text, Signature string } `json:"reasoningContent"`
			}
			Stop  string `json:"stopReason"`
			Usage struct {
				Input  int `json:"inputTokens"`
				Output int `json:"outputTokens"`
				Total  int `json:"totalTokens"`
				Read   int `json:"cacheReadInputTokens"`
			}
			Message string
		}
		decode(t, m.Payload, &v)
		name := ""
		for _, header := range []string{":event-type", ":exception-type"} {
			if value := m.Headers.Get(header); value != nil {
				name = value.String()
			}
		}
		if h.End && name != "metadata" {
			t.Fatalf("%s after the end", name)
		}
		switch name {
		case "messageStart":
		case "contentBlockStart":
			open, next = v.Index, v.Index+1
			h.Calls = append(h.Calls, simulator.Call{ID: v.Start.Use.ToolUseID, Name: v.Start.Use.Name})
		case "contentBlockDelta":
			if open == -1 && v.Index == next && v.Delta.Use == nil {
				open, next = v.Index, v.Index+1 // Only tool uses say that they begin.
			}
			if v.Index != open {
				t.Fatalf("a delta of block %d while %d is open", v.Index, open)
			}
			h.Text += v.Delta.Text
			h.Reasoning += v.Delta.Reasoning.Text
			h.Signature += v.Delta.Reasoning.Signature
			if v.Delta.Use != nil {
				h.Calls[len(h.Calls)-1].Input += v.Delta.Use.Input
			}
		case "contentBlockStop":
			open = -1
		case "messageStop":
			h.Finish, h.End = v.Stop, open == -1
		case "metadata":
			u := v.Usage
			h.Usage = &simulator.Usage{Input: u.Input + u.Read, Output: u.Output, Cached: u.Read}
			if u.Total != u.Input+u.Read+u.Output {
				t.Errorf("usage %+v", u)
			}
		default:
			if m.Headers.Get(":message-type").String() != "exception" {
				t.Fatalf("an unknown event: %s", name)
			}
			h.Failure = name + ": " + v.Message
		}
	}
}
