// Package lock acquires locks that several processes share, renews them while their
// holders work, and reports when one was lost.
//
// A Locker is made once, in main, here beside a client of Redis:
//
//	engine, err := redislock.New(client, redislock.Config{})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	locker, err := lock.New(engine, lock.Config{})
//	if err != nil {
//		return err
//	}
//	defer locker.Close(ctx)
//
// A caller acquires a key, works, and releases it:
//
//	lease, err := locker.Acquire(ctx, "report:daily") // waits until ctx ends
//	if err != nil {
//		return err
//	}
//	err = build(lease.Context()) // ends when the lock is lost
//	return errors.Join(err, lease.Release(ctx))
//
// What a holder and a waiter need not do themselves:
//
//   - renew: a watchdog does, up to Config.MaxHold;
//   - look at an expiry: [Lease.Context] ends before the lock can expire, and at once when Redis
//     reports that it was deleted;
//   - poll: a release wakes the next caller, and callers of a process queue first in, first out;
//   - clean up: the Locker releases a lock whose request got no answer;
//   - agree with Java: locks in Redis are Redisson's.
//
// A [Locker] makes leases on keys, and its engine keeps the locks: lock/redislock in Redis, as
// Redisson does, lock/sqllock in a table, lock/memlock in the memory of one process. See
// docs/engines.md for all engines, and lock/lockengine to write one.
//
// A lock in Redis can be held twice: a master may die before its replica has the key, or a process
// may pause between its last check of the lease and its write. The monotonic clock stops while a
// machine is suspended. Package dbguard lets the database decide.
package lock
