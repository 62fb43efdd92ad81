package simulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/simulator"
)

func TestChatTakesWhatServersTake(t *testing.T) {
	for name, body := range map[string]object{
		"a question":                 chatBody(hello),
		"a system prompt":            chatBody(say("system", "Be brief."), hello),
		"a developer prompt":         chatBody(say("developer", "Be brief."), hello),
		"text in parts":              chatBody(object{"role": "user", "content": []object{{"type": "text", "text": "Hello."}}}),
		"a call with its result":     chatBody(hello, asks("c1"), result("c1", "text")),
		"an empty result":            chatBody(hello, asks("c1"), result("c1", "")),
		"parallel calls":             chatBody(hello, asks("c1", "c2"), result("c1", "a"), result("c2", "b")),
		"results in another order":   chatBody(hello, asks("c1", "c2"), result("c2", "b"), result("c1", "a")),
		"calls in two steps":         chatBody(hello, asks("c1"), result("c1", "a"), asks("c2"), result("c2", "b")),
		"a later turn":               chatBody(hello, say("assistant", "Hi."), say("user", "Go on.")),
		"two user messages in a row": chatBody(hello, hello),
		"no tools":                   with(chatBody(hello), "tools", nil),
		"max_tokens":                 with(chatBody(hello), "max_tokens", 100),
		"max_completion_tokens":      with(chatBody(hello), "max_completion_tokens", 100),
		"no stream options":          with(chatBody(hello), "stream_options", nil),
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, simulator.Options{})
			r := c.post(body)
			if r.status != http.StatusOK || r.err != nil {
				t.Fatalf("status %d, %v: %s", r.status, r.err, r.body)
			}
			if got := c.last(); got.Verdict != simulator.Accepted || got.Reason != "" {
				t.Errorf("verdict %q, %s", got.Verdict, got.Reason)
			}
		})
	}
}

func TestChatRefusesWhatAServerRefuses(t *testing.T) {
	assistant := func(calls ...object) object {
		return object{"role": "assistant", "content": nil, "tool_calls": calls}
	}
	badTool := func(change object) object {
		return with(chatBody(hello), "tools", []object{change})
	}
	for name, c := range map[string]struct {
		body  object
		param string
		says  string
	}{
		"no model":                      {with(chatBody(hello), "model", nil), "model", "must provide a model"},
		"no messages":                   {chatBody(), "messages", "empty array"},
		"no stream":                     {with(with(chatBody(hello), "stream", nil), "stream_options", nil), "stream", "only streams"},
		"stream options without stream": {with(chatBody(hello), "stream", nil), "stream_options", "only allowed when 'stream'"},
		"both output limits":            {with(with(chatBody(hello), "max_tokens", 9), "max_completion_tokens", 9), "max_tokens", "at the same time"},
		"no output":                     {with(chatBody(hello), "max_tokens", 0), "max_tokens", "below minimum"},
		"negative output":               {with(chatBody(hello), "max_completion_tokens", -1), "max_completion_tokens", "below minimum"},
		"an unknown role":               {chatBody(hello, say("robot", "Beep.")), "messages[1].role", "Invalid value: 'robot'"},
		"no role":                       {chatBody(object{"content": "Hello."}), "messages[0].role", "Invalid value: ''"},
		"the assistant first":           {chatBody(say("system", "s"), say("assistant", "Hi."), hello), "messages[1].role", "start with a user message"},
		"a result first":                {chatBody(result("c1", "a")), "messages[0].role", "start with a user message"},
		"only a system prompt":          {chatBody(say("system", "s")), "messages", "at least one user message"},
		"a late system prompt":          {chatBody(hello, say("system", "s")), "messages[1].role", "must be at the beginning"},
		"the assistant last":            {chatBody(hello, say("assistant", "Hi.")), "messages[1].role", "must end with a user message"},
		"a blank question":              {chatBody(say("user", " \n")), "messages[0].content", "blank"},
		"a blank system prompt":         {chatBody(say("system", ""), hello), "messages[0].content", "blank"},
		"a blank answer":                {chatBody(hello, say("assistant", ""), hello), "messages[1].content", "blank"},
		"blank text beside calls":       {chatBody(hello, with(asks("c1"), "content", ""), result("c1", "a")), "messages[1].content", "blank"},
		"no content":                    {chatBody(object{"role": "user"}), "messages[0].content", "missing field"},
		"no content beside calls":       {chatBody(hello, with(asks("c1"), "content", nil), result("c1", "a")), "messages[1].content", "missing field"},
		"an answer of nothing":          {chatBody(hello, object{"role": "assistant", "content": nil}, hello), "messages[1].content", "got null"},
		"a result of nothing":           {chatBody(hello, asks("c1"), object{"role": "tool", "tool_call_id": "c1", "content": nil}), "messages[2].content", "got null"},
		"a picture":                     {chatBody(object{"role": "user", "content": []object{{"type": "image_url"}}}), "messages[0].content", "text only"},
		"a call without result":         {chatBody(hello, asks("c1")), "messages[1].role", "did not have response messages: c1"},
		"one result of two":             {chatBody(hello, asks("c1", "c2"), result("c1", "a"), hello), "messages[3].role", "did not have response messages: c2"},
		"a result without call":         {chatBody(hello, result("c1", "a")), "messages[1].role", "must be a response to a preceding message"},
		"a result of another call":      {chatBody(hello, asks("c1"), result("c9", "a")), "messages[2].tool_call_id", "'c9' not found"},
		"a result of an older call":     {chatBody(hello, asks("c1"), result("c1", "a"), asks("c2"), result("c1", "a")), "messages[4].tool_call_id", "'c1' not found"},
		"a result twice":                {chatBody(hello, asks("c1"), result("c1", "a"), result("c1", "a")), "messages[3].tool_call_id", "Duplicate value"},
		"a late result":                 {chatBody(hello, asks("c1"), hello, result("c1", "a")), "messages[2].role", "did not have response messages: c1"},
		"a call id twice":               {chatBody(hello, asks("c1"), result("c1", "a"), asks("c1"), result("c1", "a")), "messages[3].tool_calls[0].id", "Duplicate tool call id"},
		"a call id twice in a step":     {chatBody(hello, asks("c1", "c1"), result("c1", "a")), "messages[1].tool_calls[1].id", "Duplicate tool call id"},
		"a call without id":             {chatBody(hello, asks(""), result("", "a")), "messages[1].tool_calls[0].id", "empty string"},
		"a call without name":           {chatBody(hello, assistant(callOf("c1", "", "{}")), result("c1", "a")), "messages[1].tool_calls[0].function.name", "pattern"},
		"a call with a strange name":    {chatBody(hello, assistant(callOf("c1", "read file", "{}")), result("c1", "a")), "messages[1].tool_calls[0].function.name", "pattern"},
		"a call of another type":        {chatBody(hello, assistant(with(callOf("c1", "read", "{}"), "type", "custom")), result("c1", "a")), "messages[1].tool_calls[0].type", "'custom'"},
		"torn arguments":                {chatBody(hello, assistant(callOf("c1", "read", `{"path":`)), result("c1", "a")), "messages[1].tool_calls[0].function.arguments", "JSON object"},
		"no arguments":                  {chatBody(hello, assistant(callOf("c1", "read", "")), result("c1", "a")), "messages[1].tool_calls[0].function.arguments", "JSON object"},
		"arguments that are null":       {chatBody(hello, assistant(callOf("c1", "read", "null")), result("c1", "a")), "messages[1].tool_calls[0].function.arguments", "JSON object"},
		"arguments that are a list":     {chatBody(hello, assistant(callOf("c1", "read", "[]")), result("c1", "a")), "messages[1].tool_calls[0].function.arguments", "JSON object"},
		"a user that calls":             {chatBody(with(asks("c1"), "role", "user")), "messages[0].tool_calls", "Only assistant messages"},
		"calls without definitions":     {with(chatBody(hello, asks("c1"), result("c1", "a")), "tools", nil), "tools", "without `tools=` param"},
		"a tool of another type":        {badTool(with(toolDefinition("read"), "type", "custom")), "tools[0].type", "'custom'"},
		"a tool with a strange name":    {badTool(toolDefinition("read file")), "tools[0].function.name", "pattern"},
		"a tool twice":                  {with(chatBody(hello), "tools", []object{toolDefinition("read"), toolDefinition("read")}), "tools[1].function.name", "unique"},
		"a tool without schema":         {badTool(object{"type": "function", "function": object{"name": "read"}}), "tools[0].function.parameters", "missing properties"},
		"a schema without properties":   {badTool(object{"type": "function", "function": object{"name": "read", "parameters": object{"type": "object"}}}), "tools[0].function.parameters", "missing properties"},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, simulator.Options{})
			// "content": nil means null in a literal and no content in with.
			r := server.post(c.body)
			var got struct {
				Error struct{ Message, Type, Param string }
			}
			if err := json.Unmarshal([]byte(r.body), &got); err != nil {
				t.Fatalf("status %d, read %q: %v", r.status, r.body, err)
			}
			if r.status != http.StatusBadRequest || got.Error.Type != "invalid_request_error" {
				t.Errorf("status %d, type %q", r.status, got.Error.Type)
			}
			if got.Error.Param != c.param || !strings.Contains(got.Error.Message, c.says) {
				t.Errorf("got %s: %s\nwant %s: ...%s...", got.Error.Param, got.Error.Message, c.param, c.says)
			}
			record := server.last()
			if record.Verdict != simulator.RejectedRule || record.Reason != r.body || record.Status != r.status {
				t.Errorf("record: %q, status %d, reason %s", record.Verdict, record.Status, record.Reason)
			}
		})
	}
}

func TestChatRefusesBytesThatAreNoJSON(t *testing.T) {
	c := start(t, simulator.Options{})
	for name, body := range map[string]string{
		"empty":         "",
		"torn":          `{"model":"m","messages":[`,
		"a wrong type":  `{"model":"m","messages":"Hello."}`,
		"invalid UTF-8": `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + "\xff" + `"}]}`,
	} {
		r := c.send(t.Context(), []byte(body))
		if r.status != http.StatusBadRequest || !strings.Contains(r.body, "could not parse") {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
	if got := len(c.server.Records().Rejected()); got != 4 {
		t.Errorf("%d rejected requests, want 4", got)
	}
}

func TestReasoningIsDemandedBackWhereTheServerNeedsIt(t *testing.T) {
	c := start(t, simulator.Options{DemandReasoning: true})
	without := chatBody(hello, asks("c1"), result("c1", "a"))
	if r := c.post(without); r.status != http.StatusBadRequest || !strings.Contains(r.body, "reasoning_content") {
		t.Errorf("without: status %d: %s", r.status, r.body)
	}
	if r := c.post(chatBody(hello, with(asks("c1"), "reasoning_content", "I look."), result("c1", "a"))); r.status != http.StatusOK {
		t.Errorf("with: status %d: %s", r.status, r.body)
	}
	if got := c.last().Request.Messages[1].Reasoning; got != "I look." {
		t.Errorf("reasoning %q", got)
	}
}

func TestRequestsAreSeenAlikeOnAllWires(t *testing.T) {
	c := start(t, simulator.Options{})
	c.post(with(chatBody(
		say("system", "Be brief."), hello,
		object{"role": "assistant", "content": "I look.", "tool_calls": []object{callOf("c1", "read", `{"path":"a"}`)}},
		result("c1", "text"),
	), "max_tokens", 100))
	got := c.last().Request
	if got.Number != 1 || got.Wire != simulator.WireChat || got.Model != "m" || got.System != "Be brief." || got.MaxOutput != 100 || !got.Stream || !got.Usage {
		t.Errorf("request: %+v", got)
	}
	want := []simulator.Message{
		{Role: simulator.RoleUser, Text: "Hello."},
		{Role: simulator.RoleAssistant, Text: "I look.", Calls: []simulator.Call{{ID: "c1", Name: "read", Input: `{"path":"a"}`}}},
		{Role: simulator.RoleTool, Results: []simulator.Result{{CallID: "c1", Output: "text"}}},
	}
	if diff := cmp.Diff(want, got.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if !got.OffersTool("read") || !got.OffersTool("list") || got.OffersTool("write") {
		t.Errorf("tools: %+v", got.Tools)
	}
	if got.Header.Get("Content-Type") != "application/json" || !json.Valid(got.Raw) {
		t.Errorf("raw request: %v %s", got.Header, got.Raw)
	}
}

func TestAnAnswerIsStreamedInPieces(t *testing.T) {
	reply := simulator.Reply{
		Reasoning: "I should look at both files.",
		Text:      "Let me read <both> & see: äöü 日本語.",
		Calls: []simulator.Call{
			{Name: "read", Input: `{"path":"a.go","limit":10}`},
			{ID: "mine", Name: "list", Input: `{"path":"a directory with a long name"}`},
		},
		ChunkBytes: 8,
	}
	c := start(t, simulator.Options{Script: simulator.NewSequence(reply)})
	r := c.post(chatBody(hello))
	if got := r.header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("content type %q", got)
	}
	got, chunks := readStream(t, r.body)
	want := read{
		Reasoning: reply.Reasoning, Text: reply.Text, Finish: "tool_calls", Done: true,
		Calls: []simulator.Call{{ID: "call_1_1", Name: "read", Input: reply.Calls[0].Input}, reply.Calls[1]},
	}
	want.Usage = got.Usage
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	var order []int
	texts, thoughts := 0, 0
	for _, c := range chunks {
		for _, choice := range c.Choices {
			if choice.Delta.Content != "" {
				texts++
			}
			if choice.Delta.Reasoning != "" {
				thoughts++
			}
			for _, f := range choice.Delta.ToolCalls {
				order = append(order, f.Index)
			}
		}
	}
	if texts < 3 || thoughts < 3 {
		t.Errorf("%d pieces of text and %d of reasoning", texts, thoughts)
	}
	if got := fmt.Sprint(order[:6]); got != "[0 1 0 1 0 1]" {
		t.Errorf("the fragments of parallel calls come as %v, not interleaved", order)
	}
}

func TestShortTextsComeInTwoPieces(t *testing.T) {
	c := start(t, simulator.Options{Script: simulator.NewSequence(simulator.Text("ok"))})
	_, chunks := readStream(t, c.post(chatBody(hello)).body)
	texts := 0
	for _, c := range chunks {
		for _, choice := range c.Choices {
			if choice.Delta.Content != "" {
				texts++
			}
		}
	}
	if texts != 2 {
		t.Errorf("%d pieces, want 2", texts)
	}
}

func TestStopReasonsAreSaidInTheWordsOfTheWire(t *testing.T) {
	for _, c := range []struct {
		stop simulator.Stop
		want string
	}{
		{simulator.StopAuto, "stop"},
		{simulator.StopEnd, "stop"},
		{simulator.StopToolCalls, "tool_calls"},
		{simulator.StopLength, "length"},
		{simulator.StopContentFilter, "content_filter"},
		{simulator.StopContextWindow, "model_context_window_exceeded"},
		{"insufficient_system_resource", "insufficient_system_resource"},
	} {
		server := start(t, simulator.Options{Script: simulator.NewSequence(simulator.Reply{Text: "Hm.", Stop: c.stop})})
		if got, _ := readStream(t, server.post(chatBody(hello)).body); got.Finish != c.want {
			t.Errorf("%q: finish reason %q, want %q", c.stop, got.Finish, c.want)
		}
	}
}

func TestUsageIsReportedOnlyWhenAskedFor(t *testing.T) {
	reply := simulator.Reply{Reasoning: "I think about it.", Text: "Here is an answer."}
	usage := func(o simulator.Options, body object) (*simulator.Usage, simulator.Record, []chunk) {
		t.Helper()
		if o.Script == nil {
			o.Script = simulator.NewSequence(reply)
		}
		c := start(t, o)
		got, chunks := readStream(t, c.post(body).body)
		return got.Usage, c.last(), chunks
	}
	got, record, chunks := usage(simulator.Options{}, chatBody(hello))
	want := &simulator.Usage{Input: record.Request.InputTokens, Output: record.OutputTokens, Reasoning: simulator.CountTokens(reply.Reasoning)}
	if diff := cmp.Diff(want, got); diff != "" || got.Output <= got.Reasoning {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if last := chunks[len(chunks)-1]; last.Usage == nil || len(last.Choices) != 0 || last.Usage.Total != got.Input+got.Output {
		t.Errorf("the last chunk is %+v, want usage without choices", last)
	}
	for name, body := range map[string]object{
		"not asked": with(chatBody(hello), "stream_options", nil),
		"declined":  with(chatBody(hello), "stream_options", object{"include_usage": false}),
	} {
		if got, _, _ := usage(simulator.Options{}, body); got != nil {
			t.Errorf("%s: usage %+v", name, got)
		}
	}
	if got, _, _ := usage(simulator.Options{Usage: simulator.UsageOff}, chatBody(hello)); got != nil {
		t.Errorf("switched off: usage %+v", got)
	}
	if got, record, _ := usage(simulator.Options{UsageFactor: 2}, chatBody(hello)); got.Input != 2*record.Request.InputTokens {
		t.Errorf("with a wrong factor: input %d of %d", got.Input, record.Request.InputTokens)
	}
	override := &simulator.Usage{Input: 100, Output: 20, Cached: 64, Reasoning: 5}
	script := simulator.NewSequence(simulator.Reply{Text: "Hm.", Usage: override})
	if got, _, _ := usage(simulator.Options{Script: script}, chatBody(hello)); *got != *override {
		t.Errorf("overridden: usage %+v", got)
	}
}

func TestModelsAreListedWithTheirWindow(t *testing.T) {
	for name, c := range map[string]struct {
		o    simulator.Options
		want string
	}{
		"the real window": {simulator.Options{Window: 32768}, `[{"created":1760000000,"id":"simulated","max_model_len":32768,"object":"model","owned_by":"simulator"}]`},
		"a false one":     {simulator.Options{Window: 32768, AdvertisedWindow: 200000, Model: "m"}, `[{"created":1760000000,"id":"m","max_model_len":200000,"object":"model","owned_by":"simulator"}]`},
		"none":            {simulator.Options{Window: 32768, AdvertisedWindow: -1}, `[{"created":1760000000,"id":"simulated","object":"model","owned_by":"simulator"}]`},
	} {
		server := start(t, c.o)
		r, err := server.http.Get(server.server.URL() + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		var got struct {
			Object string
			Data   []object
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if data := string(marshal(t, got.Data)); got.Object != "list" || data != c.want {
			t.Errorf("%s: %s", name, body)
		}
		if n := len(server.server.Records()); n != 0 {
			t.Errorf("%s: the list counts as %d requests to the model", name, n)
		}
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	c := start(t, simulator.Options{})
	r, err := c.http.Post(c.server.URL()+"/chat/completions", "application/json", bytes.NewReader(marshal(t, chatBody(hello))))
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusNotFound || len(c.server.Records()) != 0 {
		t.Errorf("status %d, %d records", r.StatusCode, len(c.server.Records()))
	}
}
