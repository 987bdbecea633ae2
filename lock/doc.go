// Package lock is the first layer: a distributed lock that saves work and may
// be wrong.
//
// A [Locker] hands out leases on keys. Where locks are kept is the business of
// an [Engine]: lock/redislock keeps them in Redis, as Redisson does, and
// lock/memlock in the memory of one process. Everything else is here, once:
//
//   - Callers of one process that want the same key queue in memory, first in,
//     first out. Only the head of the queue asks the engine. It is woken by
//     engines that can ([Waker]) and polls in any case.
//   - A lock that is released while somebody here waits for it is handed over in
//     memory: always once, and again within Config.HandOver of the engine's
//     grant. Then it is really released, and the other processes come first if
//     the engine can wake them.
//   - While the engine is out of reach, as in a failover, callers who wait go on
//     asking for up to a ttl. What the engine has certainly not executed leaves
//     nothing behind.
//   - A holder whose work is done for good may leave a marker with the release,
//     which callers who ask for it are told of ([UnlessMarked]), where the engine
//     can keep it ([Marker]).
//   - A caller whose context carries a lease gets another one on the same lock
//     at once.
//   - A lease is renewed at a third of its ttl by one watchdog per Locker, for
//     as long as its holder lives, up to Config.MaxHold. Renewal goes on through
//     errors and stops when the engine says that the lock is not ours.
//   - A lease is believed in until its local deadline: the start of the last
//     successful request, plus the ttl, less a margin, on the monotonic clock.
//     Then [Lease.Context] ends with a cause that matches [ErrLost], whether or
//     not the engine could be asked, and the next caller may try.
//   - Every request is executed at most once, so that the Locker knows what it
//     sent. A request whose outcome is unknown leaves a hold that may exist:
//     such a hold is retired, that is, released again and again until a ttl
//     has passed since the Locker stopped using it, and at once when it is in the
//     way. Close waits until the engine has answered about each. A Locker retires
//     at most 10,000 holds at a time and leaves further ones to expire; it repeats
//     some 100 releases a second at most. An engine that stood still may execute
//     an acquire later than that. Such a lock is released when a caller of this
//     Locker meets it; other processes wait until it expires.
//
// # What it does not promise
//
// A lock kept in Redis can be held twice: a master may die before its replica
// has the key, and a process may be paused between its last look at the lease
// and its write. The monotonic clock does not run while a machine is suspended.
// Let the database decide; package dbguard makes it.
//
// Tokens grow from grant to grant as long as the clocks of the servers that
// issue them agree; no more is promised.
package lock
