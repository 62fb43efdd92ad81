package simulator

import "slices"

// Verdict says what the server made of a request.
type Verdict string

// The verdicts. An accepted request may still get no answer, when the script
// says so with a [Fault].
const (
	Accepted Verdict = "accepted"
	// RejectedRule means that it broke a rule of its wire, or asked for a
	// model there is not.
	RejectedRule Verdict = "broke a rule"
	// RejectedWindow means that input and requested output exceed the window.
	RejectedWindow Verdict = "over the window"
	// RejectedOutput means that it asked for more output than the model has.
	RejectedOutput Verdict = "over the output limit"
	// RejectedKey means that it had no key or a wrong one.
	RejectedKey Verdict = "not authorised"
)

func verdict(kind problemKind) Verdict {
	switch kind {
	case problemWindow:
		return RejectedWindow
	case problemOutput:
		return RejectedOutput
	case problemNoKey, problemWrongKey:
		return RejectedKey
	}
	return RejectedRule
}

// Record is one request and what became of it.
type Record struct {
	Request *Request
	Verdict Verdict
	// Status is the HTTP status of the response.
	Status int
	// Reason is the body of the rejection, empty for an accepted request.
	Reason string
	// OverWindow says that input and requested output exceed the window,
	// whatever the verdict.
	OverWindow bool
	// Reply is what the script answered, with its ids and its reason to stop,
	// cut to the output limit; Cut says that it was. OutputTokens is its size.
	Reply        Reply
	Cut          bool
	OutputTokens int
	// ClientLeft says that the client went away before the answer was sent.
	// It is certain once [Server.Idle] returned.
	ClientLeft bool
}

// Records are requests in the order of their arrival. The methods select and
// measure; they can be chained.
type Records []Record

// Records returns what arrived so far.
func (s *Server) Records() Records {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

func (r Records) where(keep func(Record) bool) Records {
	var kept Records
	for _, record := range r {
		if keep(record) {
			kept = append(kept, record)
		}
	}
	return kept
}

// Accepted returns the requests that the provider would take.
func (r Records) Accepted() Records {
	return r.where(func(record Record) bool { return record.Verdict == Accepted })
}

// Rejected returns the requests that it would not.
func (r Records) Rejected() Records {
	return r.where(func(record Record) bool { return record.Verdict != Accepted })
}

// Compactions returns the requests for summaries.
func (r Records) Compactions() Records {
	return r.where(func(record Record) bool { return record.Request.Compaction() })
}

// Parents returns all but the requests for summaries.
func (r Records) Parents() Records {
	return r.where(func(record Record) bool { return !record.Request.Compaction() })
}

// OverWindow returns the requests that exceed the window, rejected or not.
func (r Records) OverWindow() Records {
	return r.where(func(record Record) bool { return record.OverWindow })
}

// LargestInput returns the size of the largest input in tokens.
func (r Records) LargestInput() int {
	largest := 0
	for _, record := range r {
		largest = max(largest, record.Request.InputTokens)
	}
	return largest
}

// Tokens returns the sums of all inputs and outputs.
func (r Records) Tokens() (input, output int) {
	for _, record := range r {
		input += record.Request.InputTokens
		output += record.OutputTokens
	}
	return input, output
}
