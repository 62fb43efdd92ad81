package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// nameEvents adds the event lines that some compatible servers leave out of
// their streams: the SDK skips events without one, silently.
func nameEvents(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(r)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	resp.Body = &namedEvents{in: bufio.NewReader(resp.Body), body: resp.Body}
	return resp, nil
}

// namedEvents passes a stream of server-sent events on, line by line, and puts
// an event line before data that has none.
type namedEvents struct {
	in    *bufio.Reader
	body  io.Closer
	out   bytes.Buffer
	named bool
	err   error
}

// Read implements [io.Reader].
func (n *namedEvents) Read(p []byte) (int, error) {
	for n.out.Len() == 0 && n.err == nil {
		var line []byte
		line, n.err = n.in.ReadBytes('\n')
		n.line(line)
	}
	if n.out.Len() > 0 {
		return n.out.Read(p)
	}
	return 0, n.err
}

func (n *namedEvents) line(line []byte) {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		n.named = false
	case bytes.HasPrefix(line, []byte("event:")):
		n.named = true
	case bytes.HasPrefix(line, []byte("data:")) && !n.named:
		var v struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(bytes.TrimPrefix(line, []byte("data:")), &v) == nil && v.Type != "" && !strings.ContainsAny(v.Type, "\r\n") {
			n.out.WriteString("event: " + v.Type + "\n")
			n.named = true
		}
	}
	n.out.Write(line)
}

// Close implements [io.Closer].
func (n *namedEvents) Close() error { return n.body.Close() }
