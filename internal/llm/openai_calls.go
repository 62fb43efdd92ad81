package llm

import (
	"encoding/json"
	"strings"

	"keen/internal/tools"
)

// chatCalls puts calls together from the fragments of a stream. The protocol
// says that fragments with the same index belong together and that only the
// first has an id and a name; servers leave the index out, count every call 0,
// repeat ids and names, or send calls whole.
type chatCalls struct {
	list []*chatCall
}

// chatCall is a call as far as it was seen.
type chatCall struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// chatFragment is a piece of a call.
type chatFragment struct {
	// index is noIndex when the server gave none.
	index               int64
	id, name, arguments string
}

// Indices that no server gives.
const (
	noIndex     = -1
	legacyIndex = -2 // of the one call in the old function_call field
)

// add takes in the next fragment. Some servers end every answer with an empty
// one.
func (c *chatCalls) add(f chatFragment) {
	if f.id == "" && f.name == "" && f.arguments == "" {
		return
	}
	call := c.find(f)
	switch {
	case call == nil || f.startsAfter(call):
		call = &chatCall{index: f.index, id: f.id, name: f.name}
		c.list = append(c.list, call)
	case f.repeats(call):
		return
	}
	if call.id == "" {
		call.id = f.id
	}
	if call.name == "" {
		call.name = f.name
	}
	call.arguments.WriteString(f.arguments)
}

// find returns the call that a fragment may belong to.
func (c *chatCalls) find(f chatFragment) *chatCall {
	for i := len(c.list) - 1; i >= 0; i-- {
		call := c.list[i]
		if f.index == noIndex && (f.id == "" || call.id == f.id) || f.index != noIndex && call.index == f.index {
			return call
		}
	}
	return nil
}

// startsAfter reports whether a fragment begins another call although it
// points at this one. Only a fragment with a name can.
func (f chatFragment) startsAfter(call *chatCall) bool {
	switch {
	case f.name == "" || call.name == "":
		return false
	case f.name != call.name, f.id != "" && call.id != "" && f.id != call.id:
		return true
	}
	return f.arguments != "" && call.whole() && !f.repeats(call)
}

// repeats reports whether a fragment is the whole call over again: some
// servers end with a summary of what they streamed.
func (f chatFragment) repeats(call *chatCall) bool {
	return f.id != "" && f.id == call.id && f.name == call.name && f.arguments == call.arguments.String() && call.whole()
}

// whole reports whether nothing can follow the arguments seen so far. The last
// byte is looked at first, so that it costs little for each of many fragments.
func (k *chatCall) whole() bool {
	text := strings.TrimSpace(k.arguments.String())
	return strings.HasSuffix(text, "}") && json.Valid([]byte(text))
}

// complete reports whether no call is torn.
func (c *chatCalls) complete() bool {
	for _, k := range c.list {
		if k.arguments.Len() > 0 && !k.whole() {
			return false
		}
	}
	return true
}

// finished returns the calls with valid input and with ids that are not among
// the taken ones. The server's own ids are kept where they can be.
func (c *chatCalls) finished(taken callIDs) []tools.Call {
	calls := make([]tools.Call, 0, len(c.list))
	for _, k := range c.list {
		calls = append(calls, tools.Call{ID: taken.take(k.id), Name: k.name, Input: NormalizeInput(k.arguments.String())})
	}
	return calls
}
