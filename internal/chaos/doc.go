// Package chaos has a randomized test of both layers at once. Several processes do thousands of
// operations on few keys. A third of them write SQL without gorm, and on PostgreSQL a third write
// by pgx. Meanwhile locks are deleted, masters are killed with locks that no replica has, processes
// are paused past their leases and killed, COMMITs are cut, and the database is killed. Every second
// process continues without the lock while Redis cannot be reached.
//
// TestTransfers has more processes and accounts, only transfers, and only one fault: masters are
// killed. No caller may wait in vain, and no deadlock may end a transfer. BELAY_TRANSFERS=10m is
// its long form.
//
// # The plan
//
// Each run prints its seed. The seed determines the plan: each fault, its time and its victim. It
// also determines what each call of a worker does, by the call's name. Real processes do not replay
// exactly, so a seed repeats the plan and the operations, but not the schedule.
//
// # The oracle
//
// The oracle knows only what goes into Belay and comes out of it: each worker writes a journal of
// the engine's grants and releases, the database's answers, and the calls' results. From the
// journals it derives which operations had a lock at the same time. Each of these must have been
// reported, unless docs/guarantees.md names the blind spot, and nothing else may have been
// reported. A blindSpot is a part of that page. The journals and the faults must show its excuse: a
// worker that was killed, a node that died, or the cut of the call's own session.
//
// An event is reported if guard-monitor has it in its store at the end. Events pass the outbox,
// the relay and RabbitMQ, which all fail at times; each event must arrive once.
//
// A call with several keys has a leg for each key: the oracle judges each lock separately, and an
// event belongs to the leg whose key it names.
//
// A call that may share its transaction has a part for each transaction that it took part in.
// The call that sends BEGIN leads; a call of the same process and key that gets its row before
// that transaction ends is its mate. Each mate is judged as if it had made the leader's
// statements. The leader's events belong to all of them, and count them.
//
// Clients of all workers repeat the same requests, by For and by Once, until they have taken
// effect. Each of these requests must have one row, though no index prevents a second one, and
// every answer must be the one in the row.
//
// Calls that took effect have one order: each version of a row follows the version that it was made
// from, and a call that had returned comes before a call that began later. A cycle is a violation,
// also across several rows.
//
// An operation is open if its COMMIT got no answer, if it returned an unknown outcome, or if it
// never returned. Its writes may take effect at any later time, so they excuse an alarm until the
// database has proven their outcome. They do not excuse a wrong result: the rows are compared with
// the calls' results.
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
// A client may be told that its payment is undecided while a worker that is paused is in its call: that worker
// settles what it gets when it goes on, as the guide says. The journals must show its try.
//
// Behind the last fault of a long run the workers have two minutes to send all messages and events that wait.
// When they have ended, the test itself sends and applies what they have left, and settles what a repeat can
// settle. Then the provider forgets all ids, and all payments are asked for again.
//
// The locks of both are judged by their effects alone. The oracle above has those of the operations that send.
//
// # Beds
//
// A bed is a database of several nodes with faults of its own: BELAY_CHAOS_ON names one, and
// make chaos ON=beds runs all. Workers connect by a front. It queries every 200 ms which nodes accept
// writes, connects workers to one of these, and cuts the connections to the others. If several nodes
// accept writes, each worker prefers one. PgBouncer is its own front.
//
// A fault of a bed explains an unknown outcome or a stale update only if the worker's journal has
// a statement of the call without an answer, or a COMMIT with an error: a member that leaves its
// group reports a rollback of a transaction that the other members commit. An error is explained if
// servers return it under that fault: see bedWords. A wrong row has one excuse: an event that
// reports that the database has lost an acknowledged commit.
//
// To add a database, define its bed in a new file, and add it to beds.
//
// The files of a failed run are kept; BELAY_CHAOS_JUDGE judges them again.
package chaos
