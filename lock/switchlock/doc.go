// Package switchlock keeps locks in one of several engines, and moves them to another while
// all services go on: to leave a Redis that fails, or for good.
//
//	source, err := sqllock.NewSource(pool, sqllock.MySQL, "orders")
//	if err != nil {
//		return err
//	}
//	engine, err := switchlock.New(switchlock.Config{
//		Source:  source,
//		Engines: map[string]lock.Engine{"redis": redis, "sql": table},
//		First:   "redis",
//	})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	locker, err := lock.New(engine, lock.Config{})
//
// Then To, of any process, or the command belay-switch, has all processes move:
//
//	_, err := engine.To(ctx, switchlock.Change{To: "sql", By: "alice"})
//
// # The record
//
// A [Record] says where locks are kept. It is in a [Source] that all processes share: in the
// business database, so that a process that can't read it could not commit either. Each
// process reads it five times in a Lease, and grants and renews locks only while what it has
// read is no older than a Lease. Nothing else is asked while locks do not move.
//
// # A switch
//
// It takes as long as a process may rely on an old record, and as a lock may last that it
// acquired by that: Lease + TTL, and a second or two percent for clocks that differ in rate.
// That is 41 seconds with the defaults, and 14 with a Lease of 3 and a TTL of 10. A process
// that learns of a switch needs both engines for that time, from when it has learned of it:
//
//   - An acquire asks the old engine and then the new one. If that does not grant the lock, it
//     is released in the old one.
//   - A renewal renews in both. What one of them lacks is acquired there for the same owner.
//     A lock that is not in both keeps its deadline.
//
// After that time it needs the new engine alone, and the first process that has come so far
// writes that the switch is settled. Then there may be another one. Before that locks can
// only go back where they came from, which is a switch, too. A lock that was in both engines,
// and is released after that time, stays in the old one until its ttl has passed: who goes back
// that soon waits for it.
//
// Tokens follow those of the old engine as closely as a request takes. While some processes
// know of a switch and others do not, those of holders who follow each other within
// milliseconds may fall.
//
// # Why no lock has two holders
//
// Let the record be replaced at t. A process may rely on the old one until t + Lease, and a
// lock that it acquires or renews then, in the old engine alone, lasts until t + Lease + TTL.
// Every lock in the new engine alone is of a process that has learned of the switch, which
// was after t, and has waited for longer than Lease + TTL since. So a lock in the old engine
// alone and one in the new engine alone do not meet, and any other two are in an engine that
// both holders have asked. TestModel tries all ways of two processes; without any of these
// rules it finds two holders.
//
// It holds as long as each engine alone excludes, the source is right, and monotonic clocks
// run at nearly the same rate. If a failover of the source's database loses the record, the
// first process that notices makes a switch of what it knows; until all have learned of that,
// locks may overlap, and the second layer catches their writes.
//
// # When the old engine is dead
//
// The rules are the same: no lock is granted while one of two engines is silent, and those
// that are held end at their deadlines. So locks are away for the length of the switch after
// it has begun. A guard.Guard does meanwhile what its policy says. Who is sure that the old
// engine is switched off, and stays so, says since when by Change.GoneSince: locks are
// back when a TTL has passed since then.
//
// # Who has to take part
//
// All who lock the same keys: a service without switchlock, or one that uses Redisson, stays
// where it is. Let the metric belay_switch_epoch be there for all instances before the first
// switch.
package switchlock
