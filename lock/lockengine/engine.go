package lockengine

import (
	"context"
	"time"
)

// An Engine is a place where locks are kept. Each method is one attempt: it sends its
// request at most once and does not wait for a lock to become free. Implementations
// are safe for concurrent use and return when ctx ends, or a bounded time later.
//
// A ttl below a millisecond is refused with an error that matches ErrDenied.
//
// The Locker counts the ttl from the moment before it calls Acquire or Renew. The lock
// must not expire earlier than that moment plus ttl, whatever the engine does first. It
// must be gone a ttl after its last renewal, even if the engine that granted it is alive:
// an engine that keeps locks by sessions deletes them by a timer. A server's clock that
// is set forward may end locks early.
type Engine interface {
	// Acquire grants r.Key to r.Owner until ttl has passed. A second Acquire for the
	// same owner renews the lock. Acquire returns a *HeldError when another owner
	// has the key. A retry may succeed after an error that matches ErrNotSent,
	// ErrRefused or ErrNoAnswer. An error that matches ErrUnusable concerns this key
	// alone, any other the whole engine.
	//
	// A *HeldError, or an error that matches ErrNotSent, ErrRefused or ErrUnusable, and
	// not ErrNoAnswer, proves that the lock was not taken, and that no sent request
	// takes it later. The Locker does not release such a lock, so this must never be a
	// guess. The engine removes the remains of a refused attempt from the store, or
	// they expire and block no caller. After any other error the Locker assumes that
	// the lock may have been taken, and releases it.
	Acquire(ctx context.Context, r Request, ttl time.Duration) (Grant, error)

	// Renew prolongs each lock to another ttl from now. It returns one error per
	// request, in order: nil; one that matches ErrNotHeld when the owner does not have the
	// key; one that matches ErrUnusable when something else is under the key, so that the
	// lock is gone; or another when the engine cannot know. Renewals of one lock may
	// overlap, all with one ttl: none shortens the lock. All locks of a call are on one
	// node: the one that granted them or, if the engine is a Locator, the one that has them
	// now.
	Renew(ctx context.Context, rs []Request, ttl time.Duration) []error

	// Release releases r.Key. It returns an error that matches ErrNotHeld when
	// r.Owner does not have it, or ErrUnusable as Renew does. After any other error
	// the Locker releases it again. ErrNotSent means that nothing was released.
	Release(ctx context.Context, r Request) error

	// Inspect returns the present holder of key. Its Owner is empty if there is none.
	Inspect(ctx context.Context, key string) (Holder, error)

	// Close ends the engine's goroutines and the connections that it has made; requests may
	// fail from then on. It closes nothing that the caller made. If ctx ends before that is
	// done, Close returns ctx's error. A Locker does not close its engine: close the Locker
	// first.
	Close(ctx context.Context) error
}

// A Request names the key and the owner of one grant to an engine.
type Request struct {
	Key   string
	Owner string // new for every grant

	// UnlessMarked makes Acquire return an error that matches ErrMarked, and leave the
	// key as it was, if the key is marked as done, whoever holds it. If the error
	// matches ErrNoAnswer, too, the lock may have been taken. A grant has seen the
	// markers that holders before it set.
	UnlessMarked bool
	// Waits is set if the caller has waited for the key already, and will wait on if it
	// does not get it: it retries when a Waker notifies it, or some time later. An
	// engine may let waiters take turns.
	Waits bool
	// Mark is for how long Release marks the key as done, whoever holds it. Release
	// sets the marker first, and does not report that it could not. 0 = no marker.
	//
	// A marker is a hint stored with the lock: it may get lost, and does not show who
	// holds the key. An engine that keeps none ignores UnlessMarked and Mark.
	Mark time.Duration
	// Quiet makes Release notify no waiters, if the engine can. It is for an engine made
	// of several, which undoes the grant of one of them: no caller has had the lock, and
	// if each such release woke the waiters, they would wake each other all the time.
	Quiet bool
}

// A Place is where a lock is kept.
type Place struct {
	Node string // host:port, empty if unknown
	Slot int    // hash slot of a Redis Cluster; -1 = none

	// Entry is the lock's name there, with the engine's prefix; empty if it is the
	// key itself.
	Entry string
}

// A Grant is an engine's yes to one acquire.
type Grant struct {
	// Token grows from holder to holder of a key, as long as the clocks of the
	// engine's servers agree. An engine leaves room for 1023 tokens behind each.
	Token int64
	// Place is where the lock was granted.
	Place
}

// A Holder describes the owner of a key.
type Holder struct {
	Owner string        // empty = nobody
	TTL   time.Duration // until the lock expires; 0 = unknown
	Place
}

// A Waker is an engine that notifies waiters when a lock is released, so that they
// poll less.
type Waker interface {
	// Watch calls wake whenever key may have become free, until stop is called. It
	// also does so when it may have missed a release. wake does not block, and calls
	// nothing of the engine, which may hold a mutex. stop does not wait. Messages may get
	// lost: waiters poll as well, at least once a second.
	Watch(ctx context.Context, key string, wake func()) (stop func(), err error)
}

// A LossWatcher is an engine that notices when a lock is deleted or overwritten, so that
// its holder need not work on until the next renewal.
type LossWatcher interface {
	// WatchLoss calls lost when r.Owner may have lost r.Key, until stop is called. The
	// Locker then renews the lock at once, and the result of Renew decides: lost may be
	// called without a loss and more than once, and a loss may be missed. WatchLoss,
	// lost and stop do not block, and lost does not call the engine. lost may still be
	// called while stop runs.
	WatchLoss(r Request, lost func()) (stop func())
}

// A Locator is an engine that knows where it keeps locks, so that failures can be
// distinguished by place, and a slow node delays no renewals but its own.
type Locator interface {
	// Locate returns where the lock on key is kept now, as far as it is known
	// without asking a server. It does not block.
	Locate(key string) Place
}

// A Pinger is an engine that can check whether it works.
type Pinger interface {
	// Ping returns nil if the engine answers.
	Ping(ctx context.Context) error
	// Probe returns nil if a lock could be acquired now in the place where the lock
	// on key is kept: a server that is out of memory may answer Ping and Inspect,
	// and reject Acquire. It does not acquire the lock on key, and its writes expire at
	// once. Like Acquire, it is one attempt.
	Probe(ctx context.Context, key string) error
}
