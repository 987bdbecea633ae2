// Package chaos has a randomized test of both layers at once. Several processes, of which a third
// writes SQL without gorm, and on PostgreSQL a third by pgx, do thousands of operations on few keys
// while locks are wiped, masters killed with locks that no replica has, processes paused past their
// leases and killed, COMMITs cut, and the database itself killed. Every other process goes on without
// the lock where it can't be asked.
//
// TestTransfers has more processes and accounts, transfers only, and no fault but masters
// that are killed: there nobody may wait in vain, and no deadlock may end a transfer.
// BELAY_TRANSFERS=10m is its long form.
//
// # The plan
//
// A seed, which each run prints, makes the plan: which fault, when, on whom. It also makes
// what each call of a worker does, by the call's name. Real processes do not replay exactly,
// so the same seed gives the same plan and the same operations, and another schedule.
//
// # The oracle
//
// It knows nothing of Belay but what goes in and out of it: each worker writes a journal of
// when the engine granted and released, what the database answered, and what calls
// returned. From these it says which operations had a lock at the same time. Each of
// those must have been reported, unless docs/guarantees.md names the blind spot, and
// nothing else. A blindSpot is a part of that page. What excuses it is told by the journals
// and the faults: a worker that was killed, a node that died, the call's own session that
// was cut.
//
// Reported is what guard-monitor has in its store at the end. Events take the real way
// there, by the outbox, the relay and RabbitMQ, all of which are broken on the way; each
// must arrive once.
//
// A call with several keys has a leg for each: the lock on each key is judged by itself, and
// an event belongs to the leg whose key it names.
//
// A call that may share its transaction has a part for each transaction that it took part in.
// Whoever sends BEGIN leads; a call of the same process and key that gets its row before that
// transaction ends is its mate. Each is judged like a call that made the leader's statements.
// The leader's events are everybody's, and count them.
//
// Clients of all workers make the same requests, by For and by Once, again and again until
// they have taken effect. Each request that did has one row, which no index keeps from being
// there twice, and whoever has an answer has the one that the row says.
//
// Calls that were done have one order: a version of a row is made from the one before it, and what had
// returned comes before what was called later. A cycle of these is a violation, also over several rows.
//
// An operation is open if its COMMIT got no answer, if it returned an unknown outcome, or
// never returned. What it wrote may take effect at any later time, and so excuses an alarm,
// until the database has proven what became of it. It does not excuse a wrong result: the
// rows are compared with what calls returned.
//
// # Messages and calls
//
// Some operations send a message, of which each worker has a relay and an inbox. Half of the messages
// come back by the broker, from one queue with a single active consumer, and half are applied by a function of the
// relay. Each message that was committed has a row of its operation, and its effect is a row that no index
// keeps from being there twice: the judge compares the two, and the order of the effects of each key. It judges no
// order where several nodes take writes, as package relay names.
//
// Clients ask for payments by guard.Call. The provider runs in the test's own process. It answers late, cuts
// connections before a charge and behind it, fails, declines, and remembers an id for a little longer than Until. The
// judge compares its ledger with the rows, with what once.Open lists, and with what clients were told.
//
// When the workers have ended, the test itself sends and applies what they have left, and settles what a repeat can
// settle. Then the provider forgets all ids, and all payments are asked for again.
//
// The locks of both are judged by their effects alone. The oracle above has those of the operations that send.
//
// # Beds
//
// A bed is a database of several nodes with faults of its own: BELAY_CHAOS_ON names one, and
// make chaos ON=beds runs all. Workers come to it by a front, which asks each node every 200 ms whether
// it takes writes, leads to one that does, and cuts the connections to one that doesn't. Where
// several take writes, each worker has one that it prefers. PgBouncer is a front of its own.
//
// A fault of a bed explains an unknown outcome or a stale update only for a call one of whose
// statements got no answer, or whose COMMIT got an error, as its worker's journal says: a
// member that leaves its group says that it rolled back what the others commit. An error is
// explained by what servers say under that fault: see bedWords. Nothing excuses a row, but an
// event which tells that the database has lost a commit that it had acknowledged.
//
// A bed that is defined in a file of its own and named in beds is all that another database
// needs.
//
// A run that fails is kept, to be judged again: BELAY_CHAOS_JUDGE.
package chaos
