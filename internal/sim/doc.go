// Package sim runs the lock, the guard and the outbox as they are, on a simulated engine
// for locks and a simulated database, and searches for an order of events that breaks a
// promise of docs/guarantees.md.
//
//	make sim SIM=5m     # searches for five minutes
//	make sim SEED=1234  # repeats one schedule
//
// # One scheduler
//
// A schedule is two or three processes in a testing/synctest bubble. Each has its own
// Locker, Guard, pool of connections, and outbox. Each request to the engine, the database
// and the broker waits at a gate. The scheduler waits until all goroutines are blocked.
// Then it makes one choice: a request is executed, its answer is lost, it is executed late;
// a process is killed, a lock is lost, time passes. So a schedule is the list of its
// choices, and follows from a seed: which operations there are (plan), what happens
// (dice), and the random numbers of the product (package random).
//
// What is left to chance is kept from mattering. Requests that wait are ordered by who
// made them, each step takes a little time, so that timers of different steps end one
// after the other, and only one thread runs Go code.
//
// # The search
//
// The dice gives each caller a priority, and runs the first one until it puts that behind
// the others. A few faults happen where they matter: COMMITs are cut, and locks lost while
// their holder is at work.
//
// # The verdict
//
// The history has what the servers know: when a lock was granted and lost, which
// transaction changed which row. The oracle compares that with what the operations were
// told and with the events. A violation is shrunk: choices and operations are taken away as
// long as the same invariant breaks.
//
// A failure that docs/guarantees.md says nobody reports is a blind spot: a predicate with a
// name. Each that excuses something is counted.
package sim
