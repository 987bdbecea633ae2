// Package call searches all states of an operation with one call to another service in its middle
// (guard.Call), made small: one request, two processes that serve it and repeat it, an old
// program that only knows belay_once, and a provider that remembers an id until it forgets it.
//
//	report := call.Search(&call.Config{Repeats: 2, Faults: 2}, 0)
//	fmt.Print(report.Violation) // the shortest story that breaks an invariant
//
// # The protocol
//
// P is the request's row in belay_pending, C its claim and answer in belay_once.
//
//  1. Under the lock of the request a process looks for C (it replays the answer) and for P.
//  2. Without either it reserves: transaction 1 inserts P, looks for C once more, makes the
//     reservation and commits.
//  3. If P is there and its lease is over, a process takes it over, by a comparison of the attempt.
//     It never does so behind Until, and never if P has a result.
//  4. It calls the provider outside of transactions, with one id.
//  5. Transaction 2 inserts C, deletes P by the attempt, and settles. If that fails, the result is
//     stored in P, by the attempt, and only step 5 is made again.
//
// # How it works
//
// A [State] is a comparable value, and an action changes a copy of it or reports that it cannot
// happen. [Search] goes breadth first. Time has no numbers: the lease of P may end at any time, and
// Until may pass at any time after that. A check of the clock and the begin of a call are one step
// here. In the code the deadline of the call's context covers the time between the two: it is set before the
// check, and counts the time while the host is suspended.
//
// An action that breaks an invariant notes it in the state. A [Weakness] drops one rule of the
// protocol. TestMutants shows that the search finds each of the eight rules that are easiest to
// forget, and TestSchedules plays ten schedules with and without the rule that forbids each.
//
// A [Trace] holds a run of the code against the model: TestCallTraces of package sim follows schedules of the
// simulation. It keeps all states that the model may be in, given what the tables, the provider and the lock
// show after each step. Whatever does not show may happen at any time. But a process fails only if a fault has hit
// it since it made its request. Which fault it was is not checked. So the test does not find a process that loses
// its lock during the call, never settles under a new lock, and leaves that to a repeat.
//
// # What it leaves out
//
// The provider keeps an id for Until and the Timeout of a call: one that begins just before Until may
// arrive behind it. The lock's own protocol, the proof of a COMMIT and the tables of claims are in the model above
// this one. Several keys, the policy DBOnly, clocks that differ, and statements that take effect behind the end of
// their process are for the tests of the code. An asynchronous replica that loses P or C at a promotion is a blind
// spot, which docs/guarantees.md names.
package call
