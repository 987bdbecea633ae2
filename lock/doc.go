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
// A [Locker] makes leases on keys. An [Engine] keeps the locks: lock/redislock in
// Redis, as Redisson does, lock/sqllock in a table, lock/memlock in the memory of one
// process; docs/engines.md has them all. An Engine may also be a [Waker], a
// [LossWatcher], a [Locator] and a [Pinger].
//
// # Waiting
//
// Callers of one process that acquire the same key queue in memory, first in, first out.
// Only the head of the queue calls the engine. A Waker notifies it when the lock is
// released; the head polls in any case. While the engine cannot be reached, as in a
// failover, the head retries for up to a ttl.
//
// A lock that is released while a caller of this process waits is handed over in
// memory: always once, and again within Config.HandOver of the grant. Later it is
// released in the engine, so that other processes get it, too. An engine may keep the
// order in which processes began to wait: lock/redislock does.
//
// A caller whose context carries a lease on the key gets another one at once.
//
// # Holding
//
// One watchdog per Locker renews each grant at a third of its ttl for as long as its
// holder has it, up to Config.MaxHold. It retries after errors, and stops when the
// engine reports that the lock has another owner or none. When a LossWatcher reports
// that a lock may be lost, the watchdog renews that lock at once.
//
// A lease can be relied on until its local deadline: the start of the last successful
// request, plus the ttl, less a margin, on the monotonic clock. At that time
// [Lease.Context] ends with a cause that matches [ErrLost], and the next caller may
// try, whether or not the engine answers.
//
// A holder whose work is done for good may mark the key with [Lease.ReleaseMarked].
// Acquires with [UnlessMarked] then fail at once with [ErrMarked].
//
// # Requests without an answer
//
// A request is executed at most once. One without an answer may leave an unused grant.
// The Locker repeats its release until a ttl has passed, and at once when a caller
// needs the key. Close waits until the engine has answered about each such grant. There
// are at most 10,000, of which some 100 a second are released again; further ones are
// left to expire. An engine that hung may execute an acquire even later. Such a lock is
// released when a caller of this Locker needs its key; other processes wait until it
// expires.
//
// # Limits
//
// A lock in Redis can be held twice: a master may die before its replica has the key,
// or a process may pause between its last check of the lease and its write. The
// monotonic clock stops while a machine is suspended. Package dbguard lets the database
// decide. Tokens grow from grant to grant only as long as the clocks of the servers
// that issue them agree.
package lock
