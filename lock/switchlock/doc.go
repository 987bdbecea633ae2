// Package switchlock keeps locks in one of several engines, and moves them to another one while
// all services keep working: for an outage of Redis, or for good.
//
//	source, err := sqllock.NewSource(pool, sqllock.MySQL, "orders")
//	if err != nil {
//		return err
//	}
//	engine, err := switchlock.New(switchlock.Config{
//		Source:  source,
//		Engines: map[string]lockengine.Engine{"redis": redis, "sql": table},
//		First:   "redis",
//	})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	locker, err := lock.New(engine, lock.Config{})
//
// To move the locks, call [Engine.To] in any process, or run the command belay-switch:
//
//	_, err := engine.To(ctx, switchlock.Change{To: "sql", By: "alice"})
//
// # The record
//
// A [Record] says where locks are kept. It is in a [Source] that all processes share. Keep it
// in the business database: a process that can't read the record could not commit either. Each
// process reads the record five times in a Lease. It grants and renews locks only while the
// record that it has read is no older than a Lease. While locks do not move, each request goes
// to one engine only.
//
// # A switch
//
// A switch takes Lease + TTL: as long as a process may rely on the old record, and as a lock
// may last that was acquired under it. A margin for clocks that differ in rate is added: a
// second, or two percent if that is more. That is 41 seconds with the defaults, and 14 with a
// Lease of 3 and a TTL of 10. A process needs both engines for that time, from the moment when
// it has read the record of the switch:
//
//   - An acquire goes to the old engine and then to the new one. If the new one does not grant
//     the lock, it is released in the old one.
//   - A renewal renews in both engines. If one of them lacks the lock, it is acquired there for
//     the same owner. A lock that is not in both keeps its deadline. An engine that reports the
//     loss of a lock brings the renewal forward.
//
// After that time a process needs the new engine only. The first process that has come so far,
// and has that engine, marks the record as settled. Then another switch can begin. Before that,
// locks can only go back to the engine that they came from, which is a switch, too. A lock that
// was in both engines, and is released after that time, stays in the old one until its ttl has
// passed. If locks go back that soon, such a lock can't be acquired before that.
//
// Tokens of the new engine continue those of the old one. Once all processes have read the record
// of a switch, which takes a Lease at most, each token is greater than all before it. While some
// have read the record and others have not, the token of one that has not may be less than that of
// a holder before it, which has.
//
// # Why no lock has two holders
//
// Let the record be replaced at t. A process may rely on the old record until t + Lease. A
// lock that it acquires or renews until then, in the old engine alone, lasts until
// t + Lease + TTL at most. Before a process acquires locks in the new engine alone, it has read
// the new record, which was after t, and has then waited for longer than Lease + TTL. So a lock
// in the old engine alone and one in the new engine alone do not exist at the same time. Any
// other two locks have one engine in common, which excludes one of them. TestModel tries all
// orders of events of two processes; without any of these rules it finds two holders.
//
// That holds as long as each engine excludes, the source shows the latest record, and
// monotonic clocks run at nearly the same rate. If a failover of the source's database loses
// the record, the first process that notices writes what it knows as a new switch. Until all
// processes have read that, locks may overlap, and the second layer catches their writes.
//
// # When the old engine is dead
//
// The rules are the same: no lock is granted while one of the two engines does not answer, and
// the locks that are held end at their deadlines. So no lock is granted for the length of the
// switch. A guard.Guard follows its policy meanwhile. If you are sure that the old engine is
// switched off, and stays so, set Change.GoneSince to the time since when: then locks are
// granted again when a TTL has passed since that time.
//
// # Who has to take part
//
// All services that lock the same keys. A service without switchlock, or one that uses
// Redisson, stays in the old engine. Before the first switch, check that every instance has
// the metric belay_switch_epoch.
package switchlock
