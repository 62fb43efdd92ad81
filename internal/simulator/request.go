package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Wire names a wire format.
type Wire string

// WireChat is OpenAI's Chat Completions, as many servers offer it.
const WireChat Wire = "chat"

// Role says who speaks in a [Message].
type Role string

// The roles of messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleTool is a message that holds nothing but results of calls.
	RoleTool Role = "tool"
)

// Call is one request of the model to run a tool.
type Call struct {
	// ID pairs the call with its result. In a reply it may be empty: the
	// server then makes one that is unique among its answers.
	ID string
	// Name is the name of the tool.
	Name string
	// Input is a JSON object. A reply may hold anything, to see what the
	// client makes of it.
	Input string
}

// Result is the answer to a [Call].
type Result struct {
	// CallID is empty on wires that do not carry it.
	CallID string
	// Output is what the tool returned.
	Output string
}

// Message is one message of a request, the same for all wires.
type Message struct {
	Role      Role
	Text      string
	Reasoning string
	Calls     []Call
	Results   []Result
}

// Tool is a tool that a request offers.
type Tool struct {
	Name string
	// Definition is the whole definition, in the wire's own format.
	Definition json.RawMessage
}

// Request is a request as the server understood it, the same for all wires.
// Of one that breaks the rules of its wire it holds what could be read. It must
// not be changed.
type Request struct {
	// Number counts the requests of a server in the order of their arrival,
	// from 1.
	Number int
	Wire   Wire
	Model  string
	// System is the system prompt; several are joined by a blank line.
	System   string
	Messages []Message
	Tools    []Tool
	// MaxOutput is how many output tokens are asked for, 0 when the request
	// does not say.
	MaxOutput int
	// Stream says that the answer shall be streamed, Usage that the client
	// wants to be told what it used.
	Stream, Usage bool
	// InputTokens is the size of the input by the server's count: system
	// prompt, tools, and messages.
	InputTokens int
	// Header and Raw are the request as it came.
	Header http.Header
	Raw    []byte
	// Fault is what [Inject] will do to the answer, nil for nothing. A script
	// may look at it to know that its answer will not arrive.
	Fault *Fault
}

// instructionTail is how much of the end of a message is searched for an
// instruction, in bytes.
const instructionTail = 4 << 10

// Compaction reports whether the request asks for a summary of a conversation
// instead of going on with one: it offers no tools, and its last message is a
// transcript that ends with the instruction to summarise it.
func (r *Request) Compaction() bool {
	if len(r.Tools) > 0 || len(r.Messages) == 0 {
		return false
	}
	last := r.Messages[len(r.Messages)-1]
	if last.Role != RoleUser {
		return false
	}
	tail := strings.ToLower(last.Text[max(0, len(last.Text)-instructionTail):])
	return strings.Contains(tail, "summar") && strings.Contains(strings.ToLower(last.Text), "transcript")
}

// OffersTool reports whether the request offers the tool of that name.
func (r *Request) OffersTool(name string) bool {
	for _, t := range r.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// Results returns the results at the end of the request: what came back since
// the last answer. It is empty when something else came last.
func (r *Request) Results() []Result {
	from := len(r.Messages)
	for from > 0 && len(r.Messages[from-1].Results) > 0 {
		from--
	}
	var results []Result
	for _, m := range r.Messages[from:] {
		results = append(results, m.Results...)
	}
	return results
}

// Contains reports whether the text of a user message holds s.
func (r *Request) Contains(s string) bool {
	for _, m := range r.Messages {
		if m.Role == RoleUser && strings.Contains(m.Text, s) {
			return true
		}
	}
	return false
}

// The tags around the summary in the message that replaces a history.
const (
	wrapperStart = "<compacted_context>"
	wrapperEnd   = "</compacted_context>"
)

// Wrappers counts the replacements of earlier history in the request: user
// messages, or parts of one, that hold a compacted context.
func (r *Request) Wrappers() int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == RoleUser {
			n += strings.Count(m.Text, wrapperStart)
		}
	}
	return n
}

// Wrapper returns the latest compacted context in the request, without its
// tags, and an empty string when there is none.
func (r *Request) Wrapper() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		at := strings.LastIndex(m.Text, wrapperStart)
		if m.Role != RoleUser || at < 0 {
			continue
		}
		text, _, _ := strings.Cut(m.Text[at+len(wrapperStart):], wrapperEnd)
		return text
	}
	return ""
}
