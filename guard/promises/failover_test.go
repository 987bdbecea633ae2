package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// atOneAddress returns a service on a pair of databases, whose address leads to node 0 at
// first.
func atOneAddress(t *testing.T, p *teststack.Pair, params string) (*env, *testdb.Link) {
	t.Helper()
	e, address := linkedTo(t, p.DSN(0)+params)
	e.db = e.open() // past the address there is only one of the two
	return e, address
}

// failOver has the writer fail under load, or not, and the other node take its place. No row
// is written twice, none is lost that was reported as done, and no lock failure is told, as
// there is none.
func (l *load) failOver(p *teststack.Pair, address *testdb.Link, fault string) {
	t := l.e.t
	l.begin(16)
	l.progress("begins")
	if fault != "" {
		p.Run(t, fault, 0)
	}
	began := time.Now()
	p.Run(t, "promote", 1)
	address.Lead(p.Addr(t, 1))
	took := time.Since(began)
	l.progress("goes on")
	resumed := time.Since(began)
	p.Heal(t)
	l.progress("goes on with a replica")
	close(l.stop)
	l.running.Wait()
	l.check()
	l.e.wantUnknownOnly(int(l.unknown.Load()))
	t.Logf("promoted in %v, writes again after %v: %d operations, %d unknown, %d other errors, the longest took %v", took.Round(time.Millisecond),
		resumed.Round(time.Millisecond), l.done.Load(), l.unknown.Load(), l.failed.Load(), time.Duration(l.longest.Load()).Round(time.Millisecond))
}

// wantUnknownOnly wants n events, each of a COMMIT of which nobody knows what became of it.
func (e *env) wantUnknownOnly(n int) {
	e.t.Helper()
	got := e.Events.All()
	if len(got) != n || slices.ContainsFunc(got, func(ev notify.Event) bool { return ev.Verdict != notify.VerdictUnknownCommit }) {
		e.t.Errorf("events = %+v, want %d of unknown commits", got, n)
	}
}

// A load is callers that each insert orders and take from a ware until they are stopped. An
// order is tried until it is there.
type load struct {
	e       *env
	stop    chan struct{}
	limit   time.Duration // of a call, none if the driver has one
	running sync.WaitGroup
	callers int64

	done, unknown, failed atomic.Int64
	orders                atomic.Int64 // that are there
	taken, maybeTaken     [16]atomic.Int64
	longest               atomic.Int64
}

func (l *load) begin(callers int64) {
	l.callers = callers
	for c := range callers {
		l.e.create(&Ware{ID: c + 1, Left: 1e6})
	}
	for c := range callers {
		l.running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.order(fmt.Sprint(c, "-", n))
				l.take(c)
			}
		})
	}
}

// do counts a call, and how long it took.
func (l *load) do(key string, change guard.Change) error {
	ctx, cancel := bg, func() {}
	if l.limit > 0 {
		ctx, cancel = context.WithTimeout(bg, l.limit)
	}
	defer cancel()
	began := time.Now()
	err := l.e.Apply(ctx, key, change)
	for took := int64(time.Since(began)); ; {
		if was := l.longest.Load(); took <= was || l.longest.CompareAndSwap(was, took) {
			break
		}
	}
	switch {
	case err == nil:
		l.done.Add(1)
	case errors.Is(err, guard.ErrUnknown):
		l.unknown.Add(1)
	default:
		l.failed.Add(1)
		<-time.After(20 * time.Millisecond) // as a caller does that tries again
	}
	return err
}

// order inserts an order. That it is there already needs an attempt whose outcome was unknown.
func (l *load) order(no string) {
	for unknown := false; ; {
		err := l.do("order:"+no, guard.Insert(&Order{No: no}))
		switch {
		case errors.Is(err, guard.ErrDuplicate) && !unknown:
			l.e.t.Errorf("order %s is there, and no attempt says so: %v", no, err)
			fallthrough
		case err == nil, errors.Is(err, guard.ErrDuplicate):
			l.orders.Add(1)
			return
		case errors.Is(err, guard.ErrUnknown):
			unknown = true
		}
	}
}

func (l *load) take(caller int64) {
	switch err := l.do(fmt.Sprint("ware:", caller), guard.Update(&Ware{ID: caller + 1}, takeWare)); {
	case err == nil:
		l.taken[caller].Add(1)
	case errors.Is(err, guard.ErrUnknown):
		l.maybeTaken[caller].Add(1)
	}
}

// progress waits until each caller has done something more.
func (l *load) progress(what string) {
	was := l.done.Load()
	testwait.Until(l.e.t, "it "+what, func() bool { return l.done.Load() > was+10*l.callers })
}

func (l *load) check() {
	if n := l.e.count(&Order{}); n != l.orders.Load() {
		l.e.t.Errorf("%d orders are there, want %d", n, l.orders.Load())
	}
	for c := range l.callers {
		var w Ware
		wantNil(l.e.t, l.e.db.Take(&w, c+1).Error)
		taken, least := int64(1e6-w.Left), l.taken[c].Load()
		if most := least + l.maybeTaken[c].Load(); taken < least || taken > most {
			l.e.t.Errorf("%d were taken from ware %d, want %d to %d", taken, w.ID, least, most)
		}
	}
}
