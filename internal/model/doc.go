// Package model searches all states of Belay's protocol, made small: one key and one row,
// two processes, and a third caller who is handed the lock in memory. `make model` goes
// through every order in which callers, the engine, the database and faults can move, and
// checks the promises of docs/guarantees.md in each state. The row may be the claim of a
// request, whose operation has an effect and an answer, and the callers of a process may
// share a transaction. In some configurations two callers want two keys, with a row each, in the
// same order or in opposite ones.
//
//	report := model.Search(&model.Config{Callers: ..., Budget: model.Budget{Lose: 1, Cut: 1}}, "")
//	fmt.Print(report.Violation) // the shortest story that breaks an invariant
//
// # How it works
//
// A [State] is a comparable value. An action is a function that changes a copy of it, or
// can't happen there. [Search] goes breadth first, so the first story that it finds is a
// shortest one. Time has no numbers: whatever may come later may come at any time later,
// and a lock that is not renewed may expire. Faults cost from a [Budget]. States are known
// by fingerprints of 128 bits.
//
// The actions follow what the code does, not what it should do. Their files name the files
// that they follow: engine.go the engine and lock.Locker, database.go the database and
// internal/dbtx, caller.go package guard, request.go its For and Once, crew.go its Combine,
// keys.go its Also, outage.go the policy DBOnly, events.go the outbox and the monitor,
// faults.go what fails. When that code changes, they change.
//
// An [invariant] reports where it is broken. Some places are excused by a [blindspot],
// which docs/guarantees.md names. A blind spot that no configuration meets fails the run:
// then it is named for nothing, or the search has become blind itself.
//
// A [Weakness] breaks the protocol on purpose. TestInvariantsBite shows for each that its
// invariant sees it; Belay had some of them once.
//
// [Story.Case] prints a story as a case of chaos.TestOracle, to be pasted there.
//
// # Traces
//
// A [Trace] holds a run of the code against the model. TestTraces of package sim has some
// thousands of them. A [Sight] is what a run shows, and labels.go says which actions it may
// be. What may happen unseen is there, too.
//
// Package call, beside this one, is the model of an operation with a call to another service in its
// middle. `make model` runs both, and its last line has both.
//
// # To add something
//
// A step: a function in the file of its room, and a line in the list at the top of that
// file. If a trace shows it, it has a label. A fault: also a field of [Budget]. An invariant or a blind spot: an element of
// invariants or blindspots. A Weakness needs a case in TestInvariantsBite. An action that
// reports false must have changed nothing.
//
// # What it leaves out
//
// An invariant forbids wrong answers and silence. Nothing here fails where the code gives up
// too early: at an ErrUnknown whose outcome a row would prove, at a repeat that it could run
// again; nor where it goes on for too long, with a statement under a lease that has ended.
// A goroutine that an operation leaves behind is a mutex, which has no state here.
//
// What needs several rows of one key, or values: which of two keys a row changed under (a
// configuration says that it may have been the other one), the spelling of
// texts, triggers, views, cascades, upserts, deletes by callers, what raw SQL reads, nested
// operations. Of requests: prints, and an operation that refuses sometimes. Of several
// keys: answers of the engine that are lost, deadlines of locks, crashes of the database, DBOnly. Of crews:
// rows and requests of their members' own, a change of the leader that fails, members who leave, and
// what the first run of a leader leaves behind while the second one has begun: a session, an event, a
// grant that another uses, an overlap with another holder. So I5 and I7 are checked of the second run
// only. What needs clocks: deadlines of contexts, MaxHold, the limits
// of Config, wrong wall clocks. What needs code: panics, Close, events that can't be
// published, connections and goroutines that are left behind. That is for the simulation
// and the tests.
//
// Of I3, a row of equal values is the only wrong proof that can be expressed. That a row
// proves a rollback only while the lock is held needs callers that delete.
//
// Of I8, that a lock without a user expires within its ttl is taken for granted; what is
// checked is that its own process does not wait for that. Of I10, the broker loses nothing.
package model
