// Package guard makes a business operation take effect once, under concurrency
// and on machines that fail.
//
// [Guard.Do] takes a lock on a key, runs the operation in one database
// transaction, and releases the lock when the outcome is known:
//
//  1. The first layer, a lock (package lock), lets one caller through and turns
//     the others away cheaply. It may be wrong: a Redis master can die before
//     its replica has the lock, and a process can be paused past its lease.
//  2. The second layer, the database (package dbguard), is right: a unique index
//     refuses the second insert, a version column the second update.
//  3. When the second layer had to refuse, the first one failed. That is an
//     event: it is handed to the Publisher before Do returns.
//
// A request that simply comes again after the first is done is ordinary:
// [ErrDuplicate] or [ErrStale], and no event. Do tells the two apart by reading
// the row twice, as of the moment when it had the lock and as of now, and by
// asking the lock who holds it.
//
// What is promised for the rows that a key protects, whatever happens to the
// lock: an insert commits once, and an update once per version that it read.
// Which rows those are is said by [Insert], [Update] and [Protects].
//
// # How a Do ends
//
// The steps are always the same: get the lock, begin the transaction, run the
// operation, at a conflict read the row twice, COMMIT or ROLLBACK, after a
// conflict ask who holds the lock, release it, and report. There is one event
// per Do at most: an overlap outweighs a loss, a loss a commit of unknown
// outcome, and what the release finds goes into the same event.
//
//   - After a deadlock Insert and Update are run again, under the same lease; any
//     other operation only with [Retries]. What an earlier attempt saw of the row
//     still counts as evidence. Without the lock an update that lost a race to
//     another caller is run again likewise.
//   - When the answer to the COMMIT does not come, Do looks for a proof of what became
//     of it, while the lock is held, and returns nil or a clean error. What is not
//     proven is [ErrUnknown], and nobody in this process gets the key before the lease
//     would have ended. On MySQL and MariaDB, give rows that are updated a
//     [dbguard.Stamp].
//   - While the lock can't be acquired because its node does not answer or rejects
//     requests, Do refuses, and events tell how many operations were refused; or it
//     goes on with the database alone: see [Policy]. Then an outage of a place is
//     reported when it begins, with Outcome unknown, and when it ends, with the
//     number of operations that were committed without the lock; in between the lock
//     is not asked for there. An operation that runs on for more than
//     Config.EndTimeout is not counted.
//
// # Blind spots
//
// Nobody notices a commit between the grant of the lock and the begin of the
// transaction, by a holder that died before it could report; a row that was
// deleted and inserted again with the same primary key and version; and a lock
// that was lost after its holder's commit if the release met a dead node, which
// does no harm.
package guard
