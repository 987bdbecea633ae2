package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/elapsed"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/random"
)

// lanes are the lanes that are leased to this relay. The loop changes them; couriers ask for
// their lease.
type lanes struct {
	table table
	lease time.Duration

	clock   elapsed.Clock
	renewed [message.Lanes]atomic.Pointer[time.Time] // before the lease began; nil: there is none
	terms   [message.Lanes]atomic.Int64              // how often the lane was lost
	// leaving lanes are to be given to another relay, once nothing of them is under way.
	leaving [message.Lanes]atomic.Bool

	// Of the loop alone:
	stale [message.Lanes]int // couriers of an earlier term: the lane is not taken until they have ended
}

func newLanes(t table, lease time.Duration) *lanes {
	return &lanes{table: t, lease: lease}
}

// has reports whether the lane's lease lasts. It ends a little early, since clocks run at different
// speeds.
func (l *lanes) has(lane int) bool {
	at := l.renewed[lane].Load()
	return at != nil && l.clock.Since(*at) < l.lease-l.lease/10
}

// hasSince reports whether the lane was not lost since the given term, and its lease lasts.
func (l *lanes) hasSince(lane int, term int64) bool {
	return l.terms[lane].Load() == term && l.has(lane)
}

// sends reports whether rows of a lane that were taken in a term are to be sent.
func (l *lanes) sends(lane int, term int64) bool {
	return !l.leaving[lane].Load() && l.hasSince(lane, term)
}

// lose notes that another relay has the lane, or may have it.
func (l *lanes) lose(lane int) {
	if l.renewed[lane].Swap(nil) != nil {
		l.terms[lane].Add(1)
	}
	l.leaving[lane].Store(false)
}

// readable are the lanes whose messages are to be sent.
func (l *lanes) readable() (list []int) {
	for n := range l.renewed {
		if l.has(n) && !l.leaving[n].Load() {
			list = append(list, n)
		}
	}
	return list
}

// A lease is a row of belay_lane.
type lease struct {
	lane  int
	owner string
	left  int64 // ms
}

func (l lease) free() bool { return l.left <= 0 || l.left > longest.Milliseconds() }

// renew renews the leases, takes lanes that are free up to a fair share, and begins to give up
// those beyond. lost is called for each lane that was not this relay's, before it is taken.
func (l *lanes) renew(ctx context.Context, lost func(lane int)) error {
	free, excess, err := l.keep(ctx, lost)
	if err != nil {
		return err
	}
	l.leave(excess)
	// Relays that begin together take different lanes.
	shuffle(free)
	for _, lane := range free[:min(len(free), max(-excess, 0))] {
		err = errors.Join(err, l.take(ctx, lane))
	}
	return err
}

func shuffle(lanes []int) {
	for n := len(lanes) - 1; n > 0; n-- {
		other := random.Int64N(int64(n) + 1)
		lanes[n], lanes[other] = lanes[other], lanes[n]
	}
}

// keep renews the leases, and returns the lanes that are free, and how many this relay has beyond its
// share.
func (l *lanes) keep(ctx context.Context, lost func(lane int)) (free []int, excess int, err error) {
	if err := l.table.beat(ctx, l.lease); err != nil {
		return nil, 0, err
	}
	at := time.Now()
	if _, err := l.table.exec(ctx, "UPDATE belay_lane SET until_ms = {now} + ?, term = term + 1 WHERE owner = ?", l.lease.Milliseconds(), l.table.owner); err != nil {
		return nil, 0, err
	}
	fail.Point("relay/renewed")
	relays, all, err := l.table.leases(ctx)
	if err != nil {
		return nil, 0, err
	}
	mine := 0
	for _, one := range all {
		if one.owner == l.table.owner {
			l.renewed[one.lane].Store(&at)
			mine++
			continue
		}
		lost(one.lane)
		l.lose(one.lane)
		if one.free() && l.stale[one.lane] == 0 {
			free = append(free, one.lane)
		}
	}
	return free, mine - (message.Lanes+relays-1)/max(relays, 1), nil
}

// leave marks lanes so that so many leave.
func (l *lanes) leave(excess int) {
	for n := range l.leaving {
		leaves := excess > 0 && l.has(n)
		l.leaving[n].Store(leaves)
		if leaves {
			excess--
		}
	}
}

func (l *lanes) take(ctx context.Context, lane int) error {
	at := time.Now()
	n, err := l.table.exec(ctx, "UPDATE belay_lane SET owner = ?, until_ms = {now} + ?, term = term + 1 WHERE lane = ? AND NOT (until_ms BETWEEN {now} + 1 AND {now} + ?)",
		l.table.owner, l.lease.Milliseconds(), lane, longest.Milliseconds())
	if err == nil && n == 1 {
		fail.Point("relay/lane-taken")
		l.renewed[lane].Store(&at)
	}
	return err
}

// give gives a lane back.
func (l *lanes) give(ctx context.Context, lane int) error {
	l.lose(lane)
	_, err := l.table.exec(ctx, "UPDATE belay_lane SET owner = '', until_ms = 0, term = term + 1 WHERE owner = ? AND lane = ?", l.table.owner, lane)
	return err
}

// close gives all lanes back.
func (l *lanes) close(ctx context.Context) error {
	for n := range l.renewed {
		l.lose(n)
	}
	if _, err := l.table.exec(ctx, "UPDATE belay_lane SET owner = '', until_ms = 0, term = term + 1 WHERE owner = ?", l.table.owner); err != nil {
		return err
	}
	_, err := l.table.exec(ctx, "DELETE FROM belay_relay WHERE owner = ?", l.table.owner)
	return err
}

// purge deletes the rows of relays that died long ago.
func (t table) purge(ctx context.Context) error {
	_, err := t.exec(ctx, "DELETE FROM belay_relay WHERE until_ms < {now} - ?", longest.Milliseconds())
	return err
}
