package simulator

import "net/http"

// wire is one provider's format: how a request reads, what the provider
// refuses, how an answer is streamed, how failures look. It keeps no state. It
// has more methods than an interface should: each is one fact about a format.
type wire interface {
	// matches reports whether a request is for this wire, by its method and
	// path.
	matches(r *http.Request) bool
	// credential returns the key that a request carries, "" for none.
	credential(r *http.Request) string
	// parse reads a request and judges it by the rules of the wire, window
	// and output limit excepted. The request is never nil and holds what
	// could be read, also when there is a problem.
	parse(r *http.Request, body []byte) (*Request, *problem)
	// reject renders a problem as a response.
	reject(p problem) rejection
	// events renders an answer, and failure a problem inside a stream.
	events(a answer) []event
	failure(p problem) event
	// contentType is that of a stream.
	contentType() string
}

// wires is the table of the wires that a server speaks.
func wires(o Options) []wire {
	return []wire{
		chatWire{wording: o.Wording, demandReasoning: o.DemandReasoning},
		responsesWire{},
		responsesWire{codex: true},
		anthropicWire{},
		geminiWire{},
		bedrockWire{},
	}
}

// answer is what a wire renders.
type answer struct {
	request *Request
	reply   Reply
	// usage is nil when none is to be reported.
	usage *Usage
}

// event is one piece of a stream, sent at once.
type event struct {
	data []byte
	part eventPart
}

// eventPart says what an event is for.
type eventPart int

const (
	eventContent eventPart = iota
	// eventEnd belongs to what ends an answer: the reason to stop, usage, end
	// marker.
	eventEnd
)

// rejection is a response instead of an answer.
type rejection struct {
	status int
	// header is what it has beside the content type of JSON; it may be nil.
	header http.Header
	body   string
}

// problem is what is wrong with a request, or with the server.
type problem struct {
	kind problemKind
	// message and param belong to problemRule: what is wrong, and the path of
	// the field.
	message, param string
	// status belongs to problemStatus.
	status int
	// input, output and limit are sizes in tokens, for problemWindow and
	// problemOutput.
	input, output, limit int
}

// problemKind says what is wrong.
type problemKind int

const (
	problemRule problemKind = iota
	problemWindow
	problemOutput
	problemNoKey
	problemWrongKey
	// problemStatus is a failure of the server, told by its status.
	problemStatus
)
