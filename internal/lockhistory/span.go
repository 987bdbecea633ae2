package lockhistory

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belaygo/belay/lock"
)

// A Job is to take and release locks.
type Job struct {
	Where   string // the engine's store, for the function that Main is given
	Keys    []string
	Workers int           // worker i uses Keys[i%len(Keys)]
	Hold    time.Duration // half as long to half as long again; 0 = until the lock is lost
	TTL     time.Duration
}

// A Span is one hold, in nanoseconds of the host's monotonic clock, which all processes
// share.
type Span struct {
	Key, Owner, Node string
	Token            int64
	Asked, Got       int64 // Acquire was called, and returned
	Believed         int64 // when Err was nil for the last time, 0 = never
	Deadline         int64 // of the lease, then
	Done, Freed      int64 // Release was called, and returned
	End              string
	Err              string // of Acquire; nothing else is set then
}

// How a hold ended.
const (
	Released   = "released"
	Lost       = "lost"
	Unanswered = "unanswered"
)

// Now is the time of a Span.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// epoch is one moment by two clocks, which are one to the kernel. It is read when the process
// begins: between two readings later, the process may stand still.
var epoch = oneMoment()

type moment struct {
	at  time.Time
	now int64
}

// oneMoment reads both clocks, until little time passes between the readings.
func oneMoment() (m moment) {
	shortest := int64(math.MaxInt64)
	for range 100 {
		before, at := Now(), time.Now()
		if took := Now() - before; took < shortest {
			shortest, m = took, moment{at, before + took/2}
		}
	}
	return m
}

// nowAt returns what Now returns at a time of this process.
func nowAt(t time.Time) int64 { return epoch.now + int64(t.Sub(epoch.at)) }

// Work does the job until ctx ends. It tells of each hold when it has ended, one at a
// time, and when one has begun that lasts until it is lost.
func (j Job) Work(ctx context.Context, l *lock.Locker, tell func(Span)) {
	var mu sync.Mutex
	locked := func(s Span) {
		mu.Lock()
		defer mu.Unlock()
		tell(s)
	}
	var wg sync.WaitGroup
	for i := range j.Workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if s := j.span(ctx, l, j.Keys[i%len(j.Keys)], locked); s.Owner != "" || s.Err != "" {
					locked(s)
				}
			}
		})
	}
	wg.Wait()
}

// span takes a lock once.
func (j Job) span(ctx context.Context, l *lock.Locker, key string, tell func(Span)) Span {
	s := Span{Key: key, Asked: Now()}
	lease, err := l.Acquire(ctx, key)
	s.Got = Now()
	if err != nil {
		if ctx.Err() == nil {
			s.Err = err.Error()
		}
		return s
	}
	s.Owner, s.Node, s.Token = lease.Grant().Owner, lease.Grant().Node, lease.Grant().Token
	for hold := j.Hold/2 + rand.N(j.Hold+1); ; {
		now := Now()
		if lease.Err() != nil {
			break
		}
		if j.Hold == 0 && s.Believed == 0 {
			tell(Span{Key: begun})
		}
		s.Believed, s.Deadline = now, nowAt(lease.Grant().Deadline)
		if ctx.Err() != nil || j.Hold > 0 && now-s.Got > int64(hold) {
			break
		}
		<-time.After(time.Millisecond)
	}
	s.Done = Now()
	switch err := lease.Release(context.Background()); {
	case err == nil:
		s.End = Released
	case errors.Is(err, lock.ErrLost):
		s.End = Lost
	default:
		s.End = Unanswered
	}
	s.Freed = Now()
	return s
}

// begun is the key of a Span that only says that a hold has begun.
const begun = "begun"
