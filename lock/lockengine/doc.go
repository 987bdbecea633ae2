// Package lockengine is what a [github.com/belaygo/belay/lock.Locker] and its engine exchange. A
// program that acquires locks makes an engine by another package, such as lock/redislock, and
// needs nothing here but, sometimes, an error: which answers of an engine prove what.
//
// To write an engine, implement Engine, and as many of Waker, LossWatcher, Locator and Pinger as
// its store can do:
//
//	func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
//		holder, err := e.store.SetIfAbsent(ctx, r.Key, r.Owner, ttl)
//		switch {
//		case err != nil:
//			return lockengine.Grant{}, fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err)
//		case holder != r.Owner:
//			return lockengine.Grant{}, &lockengine.HeldError{Key: r.Key, Holder: lockengine.Holder{Owner: holder}}
//		}
//		...
//	}
//
// The Locker has all behavior: the queue, renewal, deadlines and retries. An engine makes one
// attempt at one request, and reports by its error what the answer proves: HeldError, that
// another owner has the key; ErrNotSent, ErrRefused and ErrUnusable, that the lock was not taken;
// ErrNoAnswer, nothing. Package lock/locktest checks an engine, and lock/memlock is the
// shortest one.
package lockengine
