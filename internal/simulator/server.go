package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// UsageMode says whether answers report usage.
type UsageMode int

// The usage modes.
const (
	// UsageOn reports usage to clients that ask for it.
	UsageOn UsageMode = iota
	// UsageOff never does.
	UsageOff
)

// Options describe a server. The zero value serves any model without limits
// and needs a Script.
type Options struct {
	// Script is the model. It must not be nil.
	Script Script
	// Window is the context window in tokens: input and requested output
	// together never exceed it. 0 means no limit.
	Window int
	// AdvertisedWindow is what the list of models claims: 0 means Window,
	// less than 0 that it says nothing.
	AdvertisedWindow int
	// MaxOutput is the most output tokens that a request may ask for, 0 means
	// no limit. An answer ends there when the request asks for none.
	MaxOutput int
	// Model is the only model there is; "" means that every name is served.
	Model string
	// Key is the key that requests must carry, "" for none.
	Key string
	// Count counts the tokens of a text; nil means CountTokens. It must be
	// safe for concurrent use. What it returns is remembered.
	Count func(string) int
	// Usage says whether usage is reported, UsageFactor by what its input is
	// multiplied before that; 0 means 1.
	Usage       UsageMode
	UsageFactor float64
	// Wording is how the server says that a request is too large.
	Wording Wording
	// DemandReasoning refuses assistant messages with calls whose reasoning
	// was not sent back, as some servers do.
	DemandReasoning bool
	// OnRecord is called with each request once it is judged, before anything
	// is sent, one at a time and in the order of arrival.
	OnRecord func(Record)
}

// Server is a scripted model server on loopback. All methods are safe for
// concurrent use.
type Server struct {
	o       Options
	wires   []wire
	counter *counter
	url     string
	http    *http.Server
	// cancel ends the contexts of all requests, and closes stopping.
	cancel   context.CancelFunc
	stopping <-chan struct{}
	served   chan struct{}
	conns    sync.WaitGroup
	closing  sync.Once

	// turn is held while a request is judged, so that scripts see one request
	// after the other.
	turn sync.Mutex

	mu      sync.Mutex
	records Records
	// active counts the answers that are being sent. idle is closed when
	// there are none; it is nil unless somebody waits for that.
	active int
	idle   chan struct{}
}

// New starts a server on a free port of the loopback interface. The caller
// must close it. It returns an error when there is no script or no port.
func New(o Options) (*Server, error) {
	if o.Script == nil {
		return nil, errors.New("start the simulator: it needs a script")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		o: o, wires: wires(o), counter: newCounter(o.Count),
		url: "http://" + listener.Addr().String(), cancel: cancel, stopping: ctx.Done(), served: make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:   s.connState,
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // It returns when the server is closed.
	}()
	return s, nil
}

// connKey is the context key of a request's connection.
type connKey struct{}

// connState counts the open connections. The first state of each is reported
// by the goroutine that accepts them, so none is added after that has ended.
func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}

// URL returns the address of the server without a path. The base URL of the
// Chat Completions wire is URL() + "/v1".
func (s *Server) URL() string { return s.url }

// Close ends every answer that is still being sent, stalled ones too, and
// returns when no goroutine of the server is left. It may be called twice.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.cancel()
		_ = s.http.Close() // The listener is closed either way.
	})
	<-s.served
	s.conns.Wait()
}

// Idle waits until no answer is being sent. What records say of requests that
// have arrived is final then. It returns an error when ctx ends before.
func (s *Server) Idle(ctx context.Context) error {
	s.mu.Lock()
	if s.active == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the simulator's answers: %w", ctx.Err())
	}
}

func (s *Server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.active == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// maxBody bounds a request, in bytes.
const maxBody = 256 << 20

// serve answers one HTTP request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.begin()
	defer s.end()
	if isModelsRequest(r) {
		s.serveModels(w)
		return
	}
	for _, candidate := range s.wires {
		if candidate.matches(r) {
			s.serveWire(w, r, candidate)
			return
		}
	}
	writeJSON(w, http.StatusNotFound, fmt.Sprintf(`{"error":{"message":"Unknown request URL: %s %s. Please check the URL for typos.","type":"invalid_request_error","param":null,"code":"unknown_url"}}`, r.Method, r.URL.EscapedPath()))
}

func (s *Server) serveWire(w http.ResponseWriter, r *http.Request, wi wire) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // The client went away, or sends without end.
	}
	request, p := wi.parse(r, body)
	request.Header, request.Raw = r.Header, body
	request.InputTokens = s.counter.input(request)
	if key := wi.credential(r); s.o.Key != "" && key != s.o.Key {
		p = &problem{kind: problemWrongKey}
		if key == "" {
			p = &problem{kind: problemNoKey}
		}
	}
	if p == nil {
		p = s.checkSize(request)
	}
	index, record := s.judge(request, p, wi)
	if p != nil {
		reject(w, wi, *p)
		return
	}
	if err := s.respond(w, r, wi, record); err != nil {
		s.unsent(index)
		panic(http.ErrAbortHandler) // The answer must not look whole.
	}
}

// unsent notes that an answer could not be sent: its client went away, unless
// it is the server that is being closed.
func (s *Server) unsent(index int) {
	select {
	case <-s.stopping:
		return
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[index].ClientLeft = true
}

// checkSize judges a request by the limits of the model.
func (s *Server) checkSize(r *Request) *problem {
	p := problem{input: r.InputTokens, output: r.MaxOutput}
	switch {
	case s.o.Model != "" && r.Model != s.o.Model:
		p.kind, p.status = problemStatus, http.StatusNotFound
	case s.o.MaxOutput > 0 && r.MaxOutput > s.o.MaxOutput:
		p.kind, p.limit = problemOutput, s.o.MaxOutput
	case s.overWindow(r):
		p.kind, p.limit = problemWindow, s.o.Window
	default:
		return nil
	}
	return &p
}

func (s *Server) overWindow(r *Request) bool {
	return s.o.Window > 0 && r.InputTokens+r.MaxOutput > s.o.Window
}

// judge asks the script about a request that has no problem, and records what
// became of it.
func (s *Server) judge(r *Request, p *problem, wi wire) (index int, record Record) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	index = len(s.records)
	s.mu.Unlock()
	r.Number = index + 1
	record = Record{Request: r, Verdict: Accepted, OverWindow: s.overWindow(r), Status: http.StatusOK}
	if p != nil {
		rejected := wi.reject(*p)
		record.Verdict, record.Status, record.Reason = verdict(p.kind), rejected.status, rejected.body
	} else {
		record.Reply, record.Cut = s.limit(r, s.o.Script.Reply(r).complete(r.Number))
		record.OutputTokens, _ = record.Reply.output(s.counter.tokens)
		switch f := record.Reply.Fault; {
		case f.replaces() && f.Kind == FaultOverflow:
			record.Status = wi.reject(s.overflow(r)).status
		case f.replaces():
			record.Status = f.status()
		}
	}
	s.mu.Lock()
	s.records = append(s.records, record)
	s.mu.Unlock()
	if s.o.OnRecord != nil {
		s.o.OnRecord(record)
	}
	return index, record
}

// limit ends a reply where the request, the model or the window demands it.
func (s *Server) limit(r *Request, reply Reply) (Reply, bool) {
	switch {
	case r.MaxOutput > 0:
		return reply.cut(r.MaxOutput, s.counter.count)
	case s.o.MaxOutput == 0 && s.o.Window == 0:
		return reply, false
	}
	limit := s.o.MaxOutput
	if room := s.o.Window - r.InputTokens; s.o.Window > 0 && (limit == 0 || room < limit) {
		limit = room
	}
	return reply.cut(limit, s.counter.count)
}

// overflow is the problem of a request that a script calls too large.
func (s *Server) overflow(r *Request) problem {
	limit := s.o.Window
	if limit == 0 || limit >= r.InputTokens+r.MaxOutput {
		limit = max(1, r.InputTokens-1)
	}
	return problem{kind: problemWindow, input: r.InputTokens, output: r.MaxOutput, limit: limit}
}

// usage is what an answer reports, nil for nothing.
func (s *Server) usage(record Record) *Usage {
	switch {
	case s.o.Usage == UsageOff || !record.Request.Usage:
		return nil
	case record.Reply.Usage != nil:
		return record.Reply.Usage
	}
	input := record.Request.InputTokens
	if s.o.UsageFactor > 0 {
		input = int(float64(input) * s.o.UsageFactor)
	}
	output, reasoning := record.Reply.output(s.counter.tokens)
	return &Usage{Input: input, Output: output, Reasoning: reasoning}
}
