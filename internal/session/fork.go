package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// ForkOptions says what a fork takes over.
type ForkOptions struct {
	// Parent is the id of the session to fork. It may be open elsewhere.
	Parent string
	// Events is how many events to take over, counted from the start as
	// [Load] returns them; 0 takes all.
	Events int
	// KeenVersion is the version of Keen that forks.
	KeenVersion string
}

// Fork starts a session that begins with what another one holds, and returns
// its log, which the caller closes. Events are copied as they stand in the
// file, so nothing that this version does not know gets lost; the parent's own
// [KindSessionStarted] is among them, after that of the fork. It fails with an
// error that wraps [ErrNotFound], [ErrNotSession] or [ErrNewerFormat].
func (s *Store) Fork(o ForkOptions) (*Log, error) {
	if !validID(o.Parent) {
		return nil, fmt.Errorf("fork session %q: %w", o.Parent, ErrNotFound)
	}
	if o.Events < 0 {
		return nil, fmt.Errorf("fork session %s: cannot take over %d events", o.Parent, o.Events)
	}
	parent, err := os.Open(s.path(o.Parent))
	if errors.Is(err, os.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", o.Parent, err)
	}
	defer func() { _ = parent.Close() }() // It was only read.
	id := newID()
	err = s.createFile(id, func(w io.Writer) error { return s.copyTo(w, parent, id, o) })
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", o.Parent, err)
	}
	return s.Open(id)
}

// errEnough stops the reading of the parent.
var errEnough = errors.New("enough events")

func (s *Store) copyTo(w io.Writer, parent io.Reader, id string, o ForkOptions) error {
	data, sum, err := encodeBatch([]Event{
		{Kind: KindSessionStarted, SessionID: id, Cwd: s.cwd, KeenVersion: o.KeenVersion},
		{Kind: KindSessionForked, ParentID: o.Parent},
	}, digest{}, time.Now())
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	forked, taken := sum.Updated, 0
	_, err = readLines(parent, func(data []byte, events []Event) error {
		if o.Events > 0 {
			events = events[:min(len(events), o.Events-taken)]
		}
		if len(events) == 0 {
			return nil
		}
		taken += len(events)
		for _, e := range events {
			sum = sum.plus(e)
		}
		// The events are old, the fork is new.
		sum.Updated = forked
		if err := copyLine(w, data, len(events), sum); err != nil {
			return err
		}
		if taken == o.Events {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if taken < o.Events {
		return fmt.Errorf("it has %d events, not %d", taken, o.Events)
	}
	return nil
}

// copyLine writes the first count events of a stored line as a line.
func copyLine(w io.Writer, data []byte, count int, sum digest) error {
	var stored line[json.RawMessage]
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	copied, err := encode(line[json.RawMessage]{Events: stored.Events[:count], Digest: sum})
	if err != nil {
		return err
	}
	_, err = w.Write(copied)
	return err
}
