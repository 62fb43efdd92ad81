package repl

import (
	"sync"

	"keen/internal/session"
)

// journal is the session that is written. Its log is made with the first thing
// to store, so that looking around leaves no empty sessions behind. Commands
// use it from their goroutines.
type journal struct {
	sessions Sessions

	// writing is held during a write, so that batches do not mix.
	writing sync.Mutex

	mu  sync.Mutex
	log Log
}

// append stores a batch. No events are no batch.
func (j *journal) append(events ...session.Event) error {
	if len(events) == 0 {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	log := j.current()
	if log == nil {
		created, err := j.sessions.Create()
		if err != nil {
			return err
		}
		j.mu.Lock()
		j.log = created
		j.mu.Unlock()
		log = created
	}
	return log.Append(events...)
}

func (j *journal) current() Log {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log
}

// id returns the id of the session, empty as long as nothing is stored. It does
// not wait for a write.
func (j *journal) id() string {
	if log := j.current(); log != nil {
		return log.ID()
	}
	return ""
}

// path returns the file of the session, empty as long as nothing is stored.
func (j *journal) path() string {
	if log := j.current(); log != nil {
		return log.Path()
	}
	return ""
}

// close releases the session after the write that goes on.
func (j *journal) close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if log := j.current(); log != nil {
		return log.Close()
	}
	return nil
}
