package switchlock

import (
	"errors"
	"time"
)

// errStale is returned when the record was read too long ago.
var errStale = errors.New("the record was not read in time")

// errNotRead is returned before the record has been read.
var errNotRead = errors.New("the record has not been read yet")

// errLost is returned when the source shows an older record than it has shown before, or
// another one of the same epoch.
var errLost = errors.New("the source has lost a record")

// A view is what a process knows of the record. Times are those of its monotonic clock.
type view struct {
	known Record
	fresh time.Duration // until when it may be relied on
	cross time.Duration // until when both engines are needed
	over  time.Duration // until when others may rely on the record before
}

// learn takes in a record that was read between started and now.
//
// The process relies on it for a Lease from the start: the record may have been replaced right
// then. It counts the crossing from the end: until then, it may have granted locks by the
// record before.
func (v view) learn(r Record, started, now time.Duration) (view, error) {
	switch {
	case r.Epoch < v.known.Epoch, r.Epoch == v.known.Epoch && r.settle() != v.known.settle():
		return v, errLost
	case r.Epoch > v.known.Epoch:
		v.cross = now + r.Cross
		v.over = now + max(r.Cross, r.Lease+slack(r.Lease))
	}
	if r.Settled {
		v.cross = now
	}
	v.known = r
	v.fresh = started + r.Lease
	return v, nil
}

// check returns an error if nothing is known yet.
func (v view) check() error {
	if v.known.Epoch == 0 {
		return errNotRead
	}
	return nil
}

// engines are those that must each grant or renew a lock, in the order in which they are
// asked: the old one first. Who is refused by that has not been in the way of the holder, who
// has to get the lock in the new one, too. Nobody waits for one while having the other.
func (v view) engines(now time.Duration) ([]string, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	if now >= v.fresh {
		return nil, errStale
	}
	return v.holding(now), nil
}

// holding are the engines that may have a lock that this process holds.
func (v view) holding(now time.Duration) []string {
	if !v.crosses(now) {
		return []string{v.known.To}
	}
	return []string{v.known.From, v.known.To}
}

// crosses reports whether both engines are needed.
func (v view) crosses(now time.Duration) bool {
	return now < v.cross && v.known.From != v.known.To
}

// maySettle reports whether no process needs the old engine any more: those that did not
// learn of the switch hold nothing by the record before.
func (v view) maySettle(now time.Duration) bool {
	return !v.known.Settled && now < v.fresh && now >= max(v.cross, v.over)
}
