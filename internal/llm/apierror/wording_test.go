package apierror

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"keen/internal/llm/apierror/recorded"
)

// answered is when the answers of this file came: X-RateLimit-Reset counts from
// it.
var answered = time.UnixMilli(1741305600000)

func rawOf(t *testing.T, w recorded.Wording) Raw {
	t.Helper()
	body := w.Body
	if body == "" {
		text, err := json.Marshal(map[string]any{"error": map[string]any{"message": w.Message, "code": w.Code, "param": w.Param}})
		if err != nil {
			t.Fatal(err)
		}
		body = string(text)
	}
	header := http.Header{}
	for name, value := range w.Headers {
		header.Set(name, value)
	}
	return Raw{Provider: w.Who, Status: w.Status, Body: body, Header: header, Now: answered}
}

// TestEveryWordingIsRead holds what servers say, and what looks like it.
func TestEveryWordingIsRead(t *testing.T) {
	wordings, err := recorded.Wordings()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wordings {
		t.Run(w.ID, func(t *testing.T) {
			e := Classify(rawOf(t, w))
			if string(e.Kind) != w.Kind {
				t.Fatalf("%s%s\nis %s, want %s", w.Message, w.Body, e.Kind, w.Kind)
			}
			switch e.Kind {
			case KindContextOverflow, KindMaxOutput:
				if e.Used != w.Used || e.Limit != w.Limit {
					t.Errorf("%s%s\n%d of %d, want %d of %d", w.Message, w.Body, e.Used, e.Limit, w.Used, w.Limit)
				}
			case KindRateLimit, KindRateLimitTokens, KindQuota:
				checkWait(t, w, e)
			}
			if e.Advice() == "" {
				t.Error("there is no advice")
			}
		})
	}
}

func checkWait(t *testing.T, w recorded.Wording, e *Error) {
	t.Helper()
	var want time.Duration
	if w.Wait != "" {
		var err error
		if want, err = time.ParseDuration(w.Wait); err != nil {
			t.Fatal(err)
		}
	}
	if e.RetryAfter != want {
		t.Errorf("%s%s\nasks to wait %v, want %v", w.Message, w.Body, e.RetryAfter, want)
	}
	if ends := !e.Retryable(); ends != (w.Ends || e.Kind == KindQuota) {
		t.Errorf("%s%s\nends the turn: %v, want %v (%s, per %q)", w.Message, w.Body, ends, w.Ends, e.Kind, e.Period)
	}
}
