package simulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"keen/internal/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is a JSON object.
type object = map[string]any

// client is an HTTP client of its own for each server.
type client struct {
	t      *testing.T
	server *simulator.Server
	http   *http.Client
}

func start(t *testing.T, o simulator.Options) *client {
	t.Helper()
	if o.Script == nil {
		o.Script = simulator.ScriptFunc(func(*simulator.Request) simulator.Reply { return simulator.Text("Fine.") })
	}
	s, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return &client{t: t, server: s, http: &http.Client{Transport: transport}}
}

// response is a response, read to its end or as far as it went.
type response struct {
	status int
	header http.Header
	body   string
	err    error
}

func (c *client) send(ctx context.Context, body []byte) response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL()+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return response{err: err}
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return response{status: answer.StatusCode, header: answer.Header, body: string(text), err: err}
}

func (c *client) post(body object) response {
	c.t.Helper()
	return c.send(c.t.Context(), marshal(c.t, body))
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// last returns the record of the last request.
func (c *client) last() simulator.Record {
	c.t.Helper()
	records := c.server.Records()
	if len(records) == 0 {
		c.t.Fatal("nothing arrived")
	}
	return records[len(records)-1]
}

// chatBody is a request of the given messages with two tools.
func chatBody(messages ...object) object {
	return object{
		"model": "m", "stream": true, "messages": messages,
		"stream_options": object{"include_usage": true},
		"tools":          []object{toolDefinition("read"), toolDefinition("list")},
	}
}

func toolDefinition(name string) object {
	return object{"type": "function", "function": object{"name": name, "parameters": object{"type": "object", "properties": object{}}}}
}

func with(body object, key string, value any) object {
	changed := object{}
	for k, v := range body {
		changed[k] = v
	}
	if value == nil {
		delete(changed, key)
	} else {
		changed[key] = value
	}
	return changed
}

func say(role, text string) object { return object{"role": role, "content": text} }

func asks(ids ...string) object {
	var calls []object
	for _, id := range ids {
		calls = append(calls, callOf(id, "read", `{"path":"a"}`))
	}
	return object{"role": "assistant", "content": nil, "tool_calls": calls}
}

func callOf(id, name, input string) object {
	return object{"id": id, "type": "function", "function": object{"name": name, "arguments": input}}
}

func result(id, output string) object {
	return object{"role": "tool", "tool_call_id": id, "content": output}
}

var hello = say("user", "Hello.")

// chunk is an event of a stream as a client reads it.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
			ToolCalls []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Finish *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt        int `json:"prompt_tokens"`
		Completion    int `json:"completion_tokens"`
		Total         int `json:"total_tokens"`
		PromptDetails struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	Error json.RawMessage
}

// read is an answer put together from its events.
type read struct {
	Reasoning, Text string
	Calls           []simulator.Call
	Finish          string
	Usage           *simulator.Usage
	Done            bool
}

// readStream puts a stream together, and fails for events that are not well
// formed. It returns the chunks as well.
func readStream(t *testing.T, body string) (read, []chunk) {
	t.Helper()
	var r read
	var chunks []chunk
	for _, event := range strings.SplitAfter(body, "\n\n") {
		if event == "" {
			continue
		}
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || !strings.HasSuffix(data, "\n\n") || r.Done {
			t.Fatalf("not an event: %q", event)
		}
		if data == "[DONE]\n\n" {
			r.Done = true
			continue
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("read %q: %v", data, err)
		}
		chunks = append(chunks, c)
		r.add(c)
	}
	return r, chunks
}

func (r *read) add(c chunk) {
	for _, choice := range c.Choices {
		r.Reasoning += choice.Delta.Reasoning
		r.Text += choice.Delta.Content
		for _, f := range choice.Delta.ToolCalls {
			if f.ID != "" {
				r.Calls = append(r.Calls, simulator.Call{ID: f.ID, Name: f.Function.Name})
			}
			r.Calls[f.Index].Input += f.Function.Arguments
		}
		if choice.Finish != nil {
			r.Finish = *choice.Finish
		}
	}
	if u := c.Usage; u != nil {
		r.Usage = &simulator.Usage{Input: u.Prompt, Output: u.Completion, Cached: u.PromptDetails.Cached, Reasoning: u.CompletionDetails.Reasoning}
	}
}
