package chaos_test

import (
	"encoding/json"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/belaygo/belay/notify"
)

// A line is one thing that happened in a worker, as it saw it outside Belay.
type line struct {
	T  int64  `json:"t"` // nanoseconds on the host's monotonic clock, which all processes share
	At moment `json:"at"`

	Do  string `json:"do,omitempty"` // the call of guard.Do
	Key string `json:"key,omitempty"`

	Also    []string `json:"also,omitempty"`    // of called: the keys beside Key
	Combine bool     `json:"combine,omitempty"` // of called: it may share its transaction
	Kind    string   `json:"kind,omitempty"`    // of called: what it does
	Request int64    `json:"request,omitempty"` // of called: that it serves; of sought and replied: the payment
	Answer  string   `json:"answer,omitempty"`  // of returned and replied

	Owner  string        `json:"owner,omitempty"`  // of asked, granted, release, released and inspected
	Node   string        `json:"node,omitempty"`   // that granted
	Result string        `json:"result,omitempty"` // of begun, ended, returned, released, inspected, stored and committing
	Event  *notify.Event `json:"event,omitempty"`
	Sample *sample       `json:"sample,omitempty"`

	Sent    int64  `json:"sent,omitempty"`    // when the request was, of renewed
	Version int64  `json:"version,omitempty"` // of loaded, and of returned: that of the row in memory
	Session int64  `json:"session,omitempty"` // of the connection, of wrote and committing
	Server  int64  `json:"server,omitempty"`  // that has it
	ID      string `json:"id,omitempty"`      // of the event, of stored and of returned, if an error names one
}

// A moment is a step of a call of guard.Do or of a grant of the lock.
type moment string

const (
	called     moment = "called"
	begun      moment = "begun"      // an attempt of the operation runs
	looked     moment = "looked"     // the database answered a SELECT
	loaded     moment = "loaded"     // the operation has read a row, at a version
	wrote      moment = "wrote"      // the database answered a write, or refused it
	broken     moment = "broken"     // a statement got no answer, or the one that its session has ended
	committing moment = "committing" // the COMMIT is about to be sent, or lost in the way that Result names
	ended      moment = "ended"      // a COMMIT, with an answer or not, or a ROLLBACK
	returned   moment = "returned"   // from Do, with a result
	asked      moment = "asked"      // the engine for the lock
	granted    moment = "granted"    // by the engine
	renewed    moment = "renewed"    // by the engine
	release    moment = "release"    // is about to be sent to the engine
	released   moment = "released"   // the engine has answered, or not

	inspected moment = "inspected" // the engine was asked who has the lock
	sampled   moment = "sampled"   // what the process has in use
	event     moment = "event"     // is about to be published
	stored    moment = "stored"    // the event was published, with a result

	sought  moment = "sought"  // a client asks for a payment
	replied moment = "replied" // to a client that asked for a payment
)

// now reads the host's monotonic clock.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// A journal writes lines to standard output, one at a time, at once: the process
// may be killed.
type journal struct{ mu sync.Mutex }

func (j *journal) write(l line) {
	l.T = now()
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := os.Stdout.Write(append(text, '\n')); err != nil {
		os.Exit(1) // the test has gone
	}
}
