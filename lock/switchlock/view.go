package switchlock

import (
	"errors"
	"time"
)

// errStale is returned when the record was read too long ago.
var errStale = errors.New("the last read of the record is older than a Lease")

// errNotRead is returned before the record has been read.
var errNotRead = errors.New("the record has not been read yet")

// errLost is returned when the source shows an older record than it has shown before, or
// another one of the same epoch.
var errLost = errors.New("the source has lost a record")

// A view is what a process knows of the record. Its times are on Engine.now's clock.
type view struct {
	known Record
	fresh time.Duration // until when the process may rely on known
	cross time.Duration // until when both engines are needed
	over  time.Duration // until when others may rely on the record before known
}

// learn returns the view after a record was read between started and now.
//
// The process relies on the record for a Lease from started: the record may have been replaced
// right after that. It needs both engines for Record.Cross from now: until now, it may have
// granted locks by the record before.
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

// engines returns the engines that must each grant or renew a lock, in the order of requests:
// the old engine first. A caller that the old engine refuses then has no lock in the new one,
// where it would keep the holder from acquiring it. No caller waits for a lock in one engine
// while it has a lock in the other, so no deadlock is possible.
func (v view) engines(now time.Duration) ([]string, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	if now >= v.fresh {
		return nil, errStale
	}
	return v.holding(now), nil
}

// holding returns the engines that may have a lock which this process holds.
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

// maySettle reports whether no process needs the old engine any more: the locks have expired
// that processes hold which have not read of the switch.
func (v view) maySettle(now time.Duration) bool {
	return !v.known.Settled && now < v.fresh && now >= max(v.cross, v.over)
}
