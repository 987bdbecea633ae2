// Package guard makes a business operation take effect once, under concurrency
// and on machines that fail.
//
//	err := g.Apply(ctx, "item:7", guard.All(
//		guard.Insert(&Sale{No: "no-1", Item: 7}), // No has a unique index
//		guard.Update(&Item{ID: 7}, func(i *Item) error { // Item has a dbguard.Version
//			if i.Left == 0 {
//				return ErrSoldOut
//			}
//			i.Left--
//			return nil
//		}),
//	))
//	switch {
//	case errors.Is(err, guard.ErrDuplicate): // done before: answer as the first time
//	case errors.Is(err, guard.ErrBusy): // another caller holds the key: try again later
//	}
//
// [Guard.Apply] runs a [Change]; [Guard.Do] runs any transaction. Both acquire the lock
// on a key, run in one database transaction, and release the lock when the outcome is
// known. Package belay opens a Guard with its parts.
//
//  1. The first layer, a lock (package lock), lets one caller through and rejects the
//     others cheaply. It can fail: a Redis master can die before its replica has the
//     lock, and a process can be paused past its lease.
//  2. The second layer, the database (package dbguard), refuses the second writer: a
//     unique index the second insert, a version column the second update.
//  3. When the second layer had to refuse, the first one has failed. An event about
//     that is handed to the Publisher before Do returns.
//
// A repeat after the first request is done is ordinary: [ErrDuplicate] or [ErrStale],
// and no event. Do distinguishes the two by reading the row twice, as of the moment when
// it had the lock and as of now, and by asking the lock who holds it.
//
// Whatever happens to the lock, for the rows that a key protects an insert commits once,
// and an update once per version that it read. [Insert], [Update] and [Protects] say
// which rows a key protects.
//
// # How a Do ends
//
// The steps are always the same: get the lock, begin the transaction, run the
// operation, at a conflict read the row twice, COMMIT or ROLLBACK, after a
// conflict query the lock's holder, release the lock, and report. Do publishes
// at most one event. An overlap takes precedence over a lost lock, and a lost
// lock over an unknown commit. A loss found at release is part of the same
// event. (With [Combine] there may be one event for the crew's lock, and another
// for the lock under which the leader runs alone afterwards.)
//
//   - After a deadlock a Change is run again, under the same lease; an Op only with
//     [Retries]. What an earlier attempt saw of the row
//     still counts as evidence.
//   - When another caller has changed one of several rows under a key, and the lock is
//     found well, the change is run again, too. Nothing shows whose lock failed, if one
//     did: the holder that has lost its lock reports that. If this lock turns out to be
//     gone later, the event has the row. Without the lock, an update that another caller
//     overtook is also run again.
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
// # Requests
//
// With [For] an operation serves a request (package once), which is stored in its
// transaction before the operation runs. A repeat is refused whatever the operation
// writes, so that even "take one" takes effect once. [Once] stores an answer, too, which
// every repeat gets.
//
// The conflict of a repeat is judged like one on any protected row, by the lock of the
// call: a request that was committed while another caller had the lock is a lock failure.
// One that was committed under other keys says nothing about the lock.
//
// # Several keys
//
// With [Also] an operation holds several keys. They are acquired in one order, and the
// transaction begins after the last grant: its snapshot is younger than every lock. Each
// row is judged by the lock on its own key, and the one event names the key that failed.
//
// # Crews
//
// With [Combine] the callers that wait for one key stand in a line. The first one leads: it
// acquires the lock. When it has it, the callers behind it with the same Change become its
// crew, and the first of the rest leads the next one. A crew is closed before its
// transaction begins, so no member gets a snapshot that is older than its call.
//
// The leader loads the row, and each member makes its change on its own goroutine, in turn:
// a panic stays in its caller. The row is saved once, and its version raised by the number
// of changes, so that of all members only the last has the version that is stored. Members
// get their answers after the COMMIT. What the database refuses may be the fault of one
// member: then each runs alone, and gets its own verdict. A lock failure is one event, whose
// Count is the number of callers that it met.
//
// Requests of members are stored by one INSERT, after their changes and before anything else
// is written. A member whose change has failed takes its request back, so that it can be
// made again. One whose request is known already gets its answer without a turn.
//
// What remains unnoticed is listed in docs/guarantees.md.
package guard
