package simulator

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
)

// respond sends the answer to an accepted request. It returns an error when the
// client went away before that was done, or the server was closed. It panics
// with [http.ErrAbortHandler] where the script breaks the connection.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, wi wire, record Record) error {
	f := record.Reply.Fault
	switch {
	case f.replaces() && f.Kind == FaultOverflow:
		reject(w, wi, s.overflow(record.Request))
		return nil
	case f.replaces():
		respondStatus(w, wi, f)
		return nil
	case f != nil && f.Kind == FaultStallHeaders:
		if err := stall(r.Context(), f); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", wi.contentType())
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := stream{w: w, flush: http.NewResponseController(w).Flush, ctx: r.Context()}
	events := wi.events(answer{request: record.Request, reply: record.Reply, usage: s.usage(record)})
	if !f.interrupts() {
		return out.send(events)
	}
	at := f.position(events)
	if err := out.send(events[:at]); err != nil {
		return err
	}
	if err := s.interrupt(&out, wi, record); err != nil || f.Kind != FaultStall {
		return err
	}
	return out.send(events[at:])
}

// interrupt does what a fault does in the middle of the stream. An error says
// that nothing more can be sent.
func (s *Server) interrupt(out *stream, wi wire, record Record) error {
	f := record.Reply.Fault
	switch f.Kind {
	case FaultStall:
		return stall(out.ctx, f)
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultReset:
		if c, ok := out.ctx.Value(connKey{}).(*net.TCPConn); ok {
			_ = c.SetLinger(0) // Closing then resets; if not, it is a drop.
		}
		panic(http.ErrAbortHandler)
	case FaultStreamError:
		if f.Body != "" {
			return out.send([]event{{data: []byte(f.Body)}})
		}
		return out.send([]event{wi.failure(problem{kind: problemStatus, status: http.StatusInternalServerError})})
	case FaultStreamOverflow:
		return out.send([]event{wi.failure(s.overflow(record.Request))})
	}
	return nil
}

// interrupts reports whether a fault does something inside the stream.
func (f *Fault) interrupts() bool {
	if f == nil {
		return false
	}
	switch f.Kind {
	case FaultStall, FaultEndEarly, FaultDrop, FaultReset, FaultStreamError, FaultStreamOverflow:
		return true
	}
	return false
}

// position returns how many of the events are sent before the fault.
func (f *Fault) position(events []event) int {
	if f.After >= 0 {
		return min(f.After, len(events))
	}
	n := 0
	for n < len(events) && events[n].part == eventContent {
		n++
	}
	return n
}

// stall waits until the fault is released. An error says that the client went
// away before, or the server was closed.
func stall(ctx context.Context, f *Fault) error {
	if f.Reached != nil {
		f.Reached()
	}
	select {
	case <-f.Release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stream sends events one at a time.
type stream struct {
	w     io.Writer
	flush func() error
	// ctx is the context of the request, which ends with the connection.
	ctx context.Context
}

// send sends events, each at once; also none, which sends the headers.
func (s *stream) send(events []event) error {
	if err := s.flush(); err != nil {
		return err
	}
	for _, e := range events {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if _, err := s.w.Write(e.data); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// respondStatus sends the response of a scripted failure.
func respondStatus(w http.ResponseWriter, wi wire, f *Fault) {
	response := rejection{status: f.status(), body: f.Body}
	if f.Body == "" {
		response = wi.reject(problem{kind: problemStatus, status: f.status()})
	}
	setHeader(w, response.header)
	setHeader(w, f.Header)
	writeJSON(w, response.status, response.body)
}

// reject sends the response to a request that is refused.
func reject(w http.ResponseWriter, wi wire, p problem) {
	r := wi.reject(p)
	setHeader(w, r.header)
	writeJSON(w, r.status, r.body)
}

func setHeader(w http.ResponseWriter, header http.Header) {
	for name, values := range header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
}

// writeJSON sends a whole response, JSON unless its headers say otherwise.
func writeJSON(w http.ResponseWriter, status int, body string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // A client that went away reads nothing.
}
