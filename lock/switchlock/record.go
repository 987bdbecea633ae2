package switchlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnsettled is returned when the locks are to go to a third engine before a switch
	// is over. They can go back.
	ErrUnsettled = errors.New("switchlock: a switch is not over")
	// ErrChanged is returned by a Source whose record is not the one that was to be
	// replaced.
	ErrChanged = errors.New("switchlock: the record has changed")
)

// A Record says which engine keeps the locks. All processes that share locks read the same
// one. It is replaced as a whole.
type Record struct {
	// Epoch grows with each switch. 0 = there is no record yet.
	Epoch int64
	// From is the engine that kept the locks before, and To the one that keeps them now.
	From, To string
	// Settled says that no process needs From any more.
	Settled bool
	// Lease is how long a process relies on the record after it has read it.
	Lease time.Duration
	// TTL is the longest ttl of a lock.
	TTL time.Duration
	// Cross is how long a process that has learned of the record needs both engines.
	Cross time.Duration
	// Base is added to the tokens of To, so that they are greater than those of From.
	Base int64
	// By is who made the switch, for people.
	By string
}

// A Source keeps the record. All processes that share locks have the same one, and one that
// has lost the record, or shows an old one, is as bad as an engine that has lost its locks.
// It is safe for concurrent use.
type Source interface {
	// Read returns the record as it is, or was after Read was called: a copy that may be
	// older is not good enough. It returns the zero Record if there is none.
	Read(ctx context.Context) (Record, error)
	// Swap replaces old, which is known by Epoch and Settled, by next. It returns an error
	// that matches ErrChanged if another record is there. After any other error it is
	// unknown whether next is there.
	Swap(ctx context.Context, old, next Record) error
}

// crossing is for how long a switch needs both engines: longer than a process may rely on the
// record before it, and than a lock may last that it has acquired by that. Clocks may differ
// in rate by two percent.
func crossing(lease, ttl time.Duration) time.Duration {
	return lease + ttl + slack(lease+ttl)
}

func slack(d time.Duration) time.Duration { return max(time.Second, d/50) }

// to returns the record of a switch to an engine. If it keeps the locks already, that is r.
func (r Record) to(name string) (Record, error) {
	switch {
	case r.Epoch == 0:
		return r, errors.New("switchlock: there is no record yet: no process has started")
	case name == r.To:
		return r, nil
	case !r.Settled && name != r.From:
		return r, fmt.Errorf("%w: locks go from %s to %s; they can go back", ErrUnsettled, r.From, r.To)
	}
	r.Epoch++
	r.From, r.To, r.Settled = r.To, name, false
	r.Cross = crossing(r.Lease, r.TTL)
	return r, nil
}

// retime returns the record of a switch from an engine to itself that changes the times.
// When it is over nobody relies on the old ones any more.
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

// restore returns the record that replaces r, which the source shows although this process
// knows a later one: a switch from the engine that others may rely on now.
func (r Record) restore(known Record) Record {
	next := known
	next.Epoch = max(r.Epoch, known.Epoch) + 1
	switch {
	case r.To != "" && r.To != known.To:
		next.From = r.To
	case known.Settled:
		next.From = known.To // it lasts as long as a switch, and needs no other engine
	}
	next.Settled = false
	next.Cross = crossing(max(r.Lease, known.Lease), max(r.TTL, known.TTL))
	next.By = "a process that knows of " + known.To
	return next
}
