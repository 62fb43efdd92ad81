package simulator

import (
	"fmt"
	"net/http"
)

// A Script is the model: it says what to answer. Reply is called for each
// request that the server accepts, one at a time, in the order of their arrival;
// it must not wait for another request.
type Script interface {
	Reply(r *Request) Reply
}

// ScriptFunc makes a script of a function.
type ScriptFunc func(r *Request) Reply

// Reply calls the function.
func (f ScriptFunc) Reply(r *Request) Reply { return f(r) }

// Split sends the requests for summaries to one script and all others to
// another.
func Split(parent, compaction Script) Script {
	return ScriptFunc(func(r *Request) Reply {
		if r.Compaction() {
			return compaction.Reply(r)
		}
		return parent.Reply(r)
	})
}

// Inject makes answers go wrong: fault looks at each request and returns what
// shall happen to its answer, nil for nothing. The script is asked only where
// something of its answer is sent, and finds the fault in the request.
func Inject(s Script, fault func(r *Request) *Fault) Script {
	return ScriptFunc(func(r *Request) Reply {
		f := fault(r)
		if f == nil {
			return s.Reply(r)
		}
		if f.replaces() {
			return Fail(f)
		}
		r.Fault = f
		reply := s.Reply(r)
		reply.Fault = f
		return reply
	})
}

// Sequence is a script that gives one reply after the other.
type Sequence struct {
	// Summary answers requests for summaries, which take no reply from the
	// list. Nil means a short summary that says little.
	Summary func(r *Request) Reply

	replies []Reply
	next    int
}

// NewSequence returns a script that answers each request but those for
// summaries with the next reply. One after the last is answered with status 400,
// so that the mistake shows.
func NewSequence(replies ...Reply) *Sequence { return &Sequence{replies: replies} }

// Reply implements [Script].
func (s *Sequence) Reply(r *Request) Reply {
	if r.Compaction() {
		if s.Summary != nil {
			return s.Summary(r)
		}
		return Text(Summary{
			Goal: "Carry out the task of the most recent user message.",
			Next: "Continue with the next step of the task.",
		}.Text(defaultSummaryTokens))
	}
	if s.next == len(s.replies) {
		return Fail(Response(http.StatusBadRequest, "application/json",
			fmt.Sprintf(`{"error":{"message":"simulator: the script has %d replies and none for request %d","type":"simulator_error"}}`, len(s.replies), r.Number)))
	}
	s.next++
	return s.replies[s.next-1]
}
