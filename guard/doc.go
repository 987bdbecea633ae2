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
package guard
