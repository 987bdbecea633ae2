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
// made them. A caller waits at the gate, too, before it joins the queue for a key: several
// go on at once when a crew gives them back, or an outage begins. Each step takes a little
// time, so that timers of different steps end one after the other, and only one thread runs
// Go code.
//
// # The search
//
// The dice gives each caller a priority, and runs the first one until it puts that behind
// the others. A few faults happen where they matter: COMMITs are cut, and locks lost while
// their holder is at work. Contexts of callers end at any time.
//
// # Several keys, and crews
//
// A transfer changes a row under each of two keys. Callers of one process that wait for a
// key share transactions, if their workload combines. Which of them do so, the oracle learns
// from what the servers see: the statements name their rows, and each account has the names
// of those who have changed it, in their order. So a crew's UPDATE is a commit of each of
// its members, and each is judged as if it had been alone. Some changes take long: the
// turns of their crew end meanwhile.
//
// # Requests
//
// Operations that serve a request share it with others, of other processes, under the same
// keys and under others; few ask for something else. What they do would take effect again:
// they take one more, or insert a row of their own name. Some fail, panic, or refuse. And
// requests are purged: then the server's clock goes ahead, while no operation has written its
// claim and not ended. From the rows of package once the
// history has the lives of a request: from the commit of its claim until that is deleted.
// Each answer is compared with the one that was stored in a life that its caller may have
// seen.
//
// # Calls
//
// An operation with a call in its middle calls a bank, which acts once for each id. The bank
// remembers an id as long as the guard relies on that, and no longer. A call may be answered late, lose its
// answer, arrive behind the end of its caller, and charge although the bank says that it is busy. One request of a plan may be
// one that the bank declines. Its reservation and its settlement are rows of their own. Callers rest
// between their operations, for longer than a lease, too. While a call is at work requests do not get old: they would
// without the time that the bank forgets in.
//
// # Messages
//
// Any operation may send a message with its commit, whatever else it does. Nobody takes
// messages out, so that each moment shows who has sent one.
//
// # Rest
//
// In some schedules the faults end at a step that the plan draws. What was delayed arrives. One fault
// may stay for good: the bank or the server of the locks is gone, or a process is not started again. From then on
// waits must end, and nobody waits for a lock that is free. Once all callers have ended, in each schedule,
// what is pending is repeated until it is settled, or its caller is told that it is
// undecided, and people see it in the list.
//
// # Strays
//
// Some operations leave a goroutine behind, whose statement races with the end of the
// transaction. It pauses between its admission and its sending. A connection executes one
// statement at a time, and whoever waits for it waits for a mutex, which a scheduler of a
// bubble must not see. So a statement that was admitted is sent at a moment when its connection
// is idle, or right behind the COMMIT or ROLLBACK.
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
//
// A violation names an invariant, as in "I3: ... returned nil, and has committed 0 of 1
// rows". Those that begin with I are the model's, too, those with S are the simulation's
// own:
//
//	I0   a schedule ends
//	I1   a row is inserted once
//	I2   a version of a row is the base of one commit, and has what the commits say
//	I3   nil means that the commit took effect and stays, an error that it did not
//	I4   after an unknown commit the process leaves the key alone until the deadline
//	I5   a lock that is lost at work, or a rival's commit that is met, is reported
//	I6   no lock failure is reported without a reason; one for a claim only if that was made
//	     under the same keys
//	I7   a Do reports one event at most, about one of its keys, and the one that it returns;
//	     that of a crew counts those who return it
//	I8   a Locker leaves no lock behind, and rejects nobody because of one
//	I9   an outage begins once and ends once
//	I10  a stored event is published
//	I11  a repeat repeats something
//	I12  no connection goes back to the pool in a transaction
//	S1   nobody asks for a key while it has a greater one
//	S2   a Wait lasts as long as it says, and ends
//	S3   what serves a request is committed with its claim: all of it, or none
//	S4   the operation of a request runs neither beside another one, whose transaction is open,
//	     nor once the request has taken effect
//	S5   all answers to a request are the one that is stored, that of the first caller, too
//	S6   ErrBusy for a request means that another has it, ErrDuplicate that it has taken effect
//	     and has no answer, ErrMismatch that it asks for something else than what was done
//	S7   a COMMIT of a claim is of unknown outcome only if the database can't be asked
//	S8   nobody is told of a business conflict who has none
//	S9   nobody is told that the lock is unavailable whose own time was too short for an answer
//	S10  no statement of a goroutine that outlives its operation is committed alone
//	S11  a message is committed with its operation, or not at all
//	L1   without faults an operation ends a minute after its Wait at the latest
//	L2   without faults nobody waits for a lock that nobody has
//
// Those with C are of internal/model/call, under its numbers:
//
//	C1   a request is charged for once, until its claim is purged
//	C2   all calls of a request have one content
//	C3   what is settled is what the bank has answered
//	C4   no call begins when the result is stored
//	C5   no call begins behind Until
//	C6   two calls run at once only if the first has had its time
//	C7   one attempt calls once, and only for what is pending
//	C8   a reservation is pending, or settled, and not both
//	C9   a claim is of what is settled
//	C10  what is pending is settled by repeats, or listed and undecided
//	C11  nobody is told that a request is done while it is pending
//
// # The model
//
// TestTraces follows schedules through package model. Two or three callers do the same on one
// key, or serve one request by Once, which gets an answer or a refusal. What fails is what the model
// has. A tracer names each step that a gate shows: what
// is sent, executed and answered, what is lost, what callers and the monitor are told. The
// model keeps the states that it may be in. A step that none of them can take is a difference
// between model and code, and docs/guarantees.md says which of them is wrong. TestTracesBite
// shows that a model with a weakness is caught.
//
//	make sim                     # follows 6,000 schedules of rows and 3,000 of requests, always the same
//	make sim BELAY_TRACES=20000  # follows as many others
//	make sim SEED=1234           # tells the trace of one schedule of each kind, too
//
// Of others, about one in 5,000 of rows and one in 1,000 of requests has a step that the model lacks: it is to be
// mended then. It prints actions of the model that no schedule took, and steps of the code that are no
// action. For 22 actions nothing is looked at: those of crews and DBOnly, of strangers, of purges, of a second key, and
// of a row that is another request's.
// Left out are also For, an acquire that is made
// again because it was not answered, a crash or a pause while evidence is collected, a read of a claim
// that is cut, and a crash while the outcome of a COMMIT is looked into.
//
// # More
//
// A workload is a line in workloads, and its name one in themes. A fault is an action: what
// it does is in world.apply, when it happens in dice.fault, and when it is possible in
// world.possible. A setting of the database is one of the plan. What is not promised is a
// witness, which must break. Another engine implements what server does, and its calls go
// through engine.call.
package sim
