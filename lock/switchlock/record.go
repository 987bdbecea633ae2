package switchlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnsettled is returned by a switch or a Retime while another switch is not settled.
	// Wait until Record.Settled is true. Only a switch back to the old engine is possible
	// before that.
	ErrUnsettled = errors.New("switchlock: a switch is not over")
	// ErrChanged is returned by Source.Swap when the source has another record than the one
	// to be replaced.
	ErrChanged = errors.New("switchlock: the record has changed")
)

// A Record says which engine keeps the locks. All processes that share locks read the same
// record. A Source replaces it as a whole.
type Record struct {
	// Epoch grows with each switch. 0 = there is no record yet.
	Epoch int64
	// From is the name of the engine that kept the locks before the switch. To is the name
	// of the engine that keeps them after it. Both are the same if no lock moves: before the
	// first switch, and by Engine.Retime.
	From, To string
	// Settled says that the switch is over: no process needs From any more.
	Settled bool
	// Lease is how long a process relies on the record after it has read it.
	Lease time.Duration
	// TTL is the longest ttl of a lock.
	TTL time.Duration
	// Cross is how long a process needs both engines after it has read the record.
	Cross time.Duration
	// Base is added to the tokens of To, so that they are greater than those of From.
	Base int64
	// By says who made the switch. It is for people, and has no effect.
	By string
}

// A Source keeps the record. All processes that share locks use the same Source, such as
// that of sqllock.NewSource. If it loses the record or returns an old one, locks may have two
// holders. An implementation must be safe for concurrent use.
type Source interface {
	// Read returns the record as it was at some time between the call and its return. So a
	// cache or a replica that may be behind must not answer. Read returns the zero Record if
	// there is none.
	Read(ctx context.Context) (Record, error)
	// Swap replaces the record by next if it has the Epoch and Settled of old; the zero old
	// stands for no record. If another record is there, Swap returns an error that matches
	// ErrChanged. After any other error it is unknown whether next is there.
	Swap(ctx context.Context, old, next Record) error
}

// crossing returns how long a switch needs both engines: longer than a process may rely on the
// record before the switch, and a lock may last that was acquired under it. Clocks may differ
// in rate by two percent.
func crossing(lease, ttl time.Duration) time.Duration {
	return lease + ttl + slack(lease+ttl)
}

func slack(d time.Duration) time.Duration { return max(time.Second, d/50) }

// to returns the record of a switch to an engine. It returns r if that engine keeps the locks
// already.
func (r Record) to(name string) (Record, error) {
	switch {
	case r.Epoch == 0:
		return r, errors.New("switchlock: there is no record yet: start a service first")
	case name == r.To:
		return r, nil
	case !r.Settled && name != r.From:
		return r, fmt.Errorf("%w: locks move from %s to %s, and can only go back to %s", ErrUnsettled, r.From, r.To, r.From)
	}
	r.Epoch++
	r.From, r.To, r.Settled = r.To, name, false
	r.Cross = crossing(r.Lease, r.TTL)
	return r, nil
}

// retime returns the record of a switch from an engine to itself that changes Lease and TTL.
// When it is settled, no process relies on the old ones.
func (r Record) retime(lease, ttl time.Duration) (Record, error) {
	switch {
	case r.Epoch == 0 || !r.Settled:
		return r, fmt.Errorf("%w, or there is no record yet", ErrUnsettled)
	case r.Lease == lease && r.TTL == ttl:
		return r, nil
	}
	r.Epoch++
	r.From, r.Settled = r.To, false
	r.Cross = crossing(max(r.Lease, lease), max(r.TTL, ttl))
	r.Lease, r.TTL = lease, ttl
	return r, nil
}

// settle returns the record of a switch that is over.
func (r Record) settle() Record {
	r.Settled = true
	return r
}

// restore returns the record that replaces r when the source has lost the record known, and
// shows r instead: a switch to known.To, from the engine that others may rely on by r.
func (r Record) restore(known Record) Record {
	next := known
	next.Epoch = max(r.Epoch, known.Epoch) + 1
	switch {
	case r.To != "" && r.To != known.To:
		next.From = r.To
	case known.Settled:
		next.From = known.To // the switch takes its time, but needs one engine only
	}
	next.Settled = false
	next.Cross = crossing(max(r.Lease, known.Lease), max(r.TTL, known.TTL))
	next.By = "a process that restored a lost record"
	return next
}
