// Package sim runs the lock, the guard, the outbox, the relay and the inbox as they are, on a simulated
// engine for locks and simulated databases, and searches for an order of events that breaks a
// promise of docs/guarantees.md.
//
//	make sim SIM=5m     # searches for five minutes
//	make sim SEED=1234  # repeats one schedule
//	make sim SIM=5m BELAY_SIM_EFFECTS=1   # only schedules with messages or calls
//
// # One scheduler
//
// A schedule is two or three processes in a testing/synctest bubble. Each has its own
// Locker, Guard, pool of connections, and outbox. Each request to the engine, the database
// and the broker waits at a gate. The scheduler waits until all goroutines are blocked.
// Then it makes one choice: it executes a request, loses its answer, or executes it late; it
// kills a process, loses a lock, or lets time pass. A schedule is the list of these
// choices. A seed determines them: the operations (plan), the events (dice), and the
// product's random numbers (package random).
//
// The Go scheduler's own choices must not matter. Waiting requests are ordered by their
// callers. A caller also waits at the gate before it joins the queue for a key, because several
// callers continue at once when a crew gives them back, or an outage begins. Each step takes a
// little time, so that timers of different steps end one after the other, and only one thread
// runs Go code.
//
// # The search
//
// The dice gives each caller a priority, and runs the first caller until it moves that one
// behind the others. A few faults happen where they matter: COMMITs are cut, and locks are lost
// while their holders work. Callers' contexts end at any time.
//
// # Several keys, and crews
//
// A transfer changes a row under each of two keys. Callers of one process that wait for a
// key share transactions, if their workload combines. The oracle learns which callers share one
// from what the servers see: the statements name their rows, and each account lists the callers
// that changed it, in order. So a crew's UPDATE is a commit of each member, and each member
// is judged as if it had been alone. Some changes take long: the turns of their crew end
// meanwhile.
//
// # Requests
//
// Operations of several processes serve the same request, under the same keys and under
// different ones; a few ask for other content. None is idempotent: it takes one more item, or
// inserts a row of its own name. Some fail, panic, or refuse. Requests are also purged: for
// that the server's clock jumps ahead, while no unfinished operation has written its claim. The
// history takes the lives of a request from the rows of package once: a life lasts from the
// commit of the claim until its deletion. Each answer is compared with the one that was stored
// in a life that its caller may have seen.
//
// # Calls
//
// An operation with a call in its middle calls a bank, which acts once for each id. The bank
// remembers an id exactly as long as the guard relies on it. A call may be answered late, lose
// its answer, arrive after its caller has ended, or charge although the bank answers that it is
// busy. The bank may decline one request of a plan. The reservation and the settlement are
// rows. Callers pause between their operations, sometimes for longer than a lease. Requests are
// not purged during a call: the clock's jump would leave the bank no time to forget.
//
// TestCallTraces follows schedules through internal/model/call: two processes make one request several times.
// Between two steps it looks at the tables, the bank and the lock, and at what callers were told. Left out are
// statements that are executed late, acquires without an answer, sessions that the database ends, crashes and
// failovers of the servers, callers who give up, a second kill, and refusals by the reservation. A schedule is
// followed until a third process makes the request, or a process makes it with another content than before:
// a few of the repeats in the end do.
//
// # Messages
//
// Any operation may send a message with its commit, whatever else it does. Up to three relays, each a
// process with a pool of its own, take messages to a broker. Its answer is lost, comes late or never, or
// says no; a few messages are rejected, and become dead letters. A relay is paused for longer than its
// lease while others go on, and killed. Up to two consumers handle what has arrived by an inbox, on a
// database of their own. Their locks exclude nobody, so that the inbox's row alone decides. A relay asks
// often, and mostly for nothing: its statements are choices only while a message could be sent.
// TestMessages has no relays, so that each moment shows who has sent a message. Left out are people who
// decide about dead letters, a relay that is closed, a failover of the database that loses commits, and
// purges.
//
// # Rest
//
// In some schedules the faults end at a step that the plan draws. Delayed requests arrive. One
// fault may stay: the bank or the server of the locks is gone, or a process is not started again.
// From then on waits must end, and no caller may wait for a free lock. When all callers have
// ended, each schedule repeats its pending requests until they are settled, or until the answer
// is that they are undecided and the list for people has them.
//
// # Strays
//
// Some operations leave a goroutine behind, whose statement races with the end of the
// transaction. The statement pauses between its admission and its sending. A connection executes
// one statement at a time. A goroutine that waits for the connection waits for a mutex, and a
// bubble does not take it for blocked. So an admitted statement is sent while its connection is
// idle, or right after the COMMIT or ROLLBACK.
//
// # The verdict
//
// The history has what the servers know: when a lock was granted and lost, and which
// transaction changed which row. The oracle compares it with the operations' results and with
// the events. A violation is shrunk: choices and operations are removed as long as the same
// invariant breaks.
//
// A blind spot is a failure that nobody reports, according to docs/guarantees.md. It is a
// predicate with a name. The search counts each one that excuses something.
//
// A violation names an invariant, as in "I3: ... returned nil, and has committed 0 of 1
// rows". The model has the invariants that begin with I, too. Those with S and L are the
// simulation's own:
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
//	     and has no answer, ErrMismatch that it asks for something else than what was done, or
//	     has no use for a refusal
//	S7   a COMMIT of a claim is of unknown outcome only if the database can't be asked, or another
//	     attempt may have had the request since: past the lease of a call
//	S8   a business conflict is returned only if there is one
//	S9   ErrUnavailable is not returned to a caller whose own time was too short for an answer
//	S10  no statement of a goroutine that outlives its operation is committed alone
//	S11  a message is committed with its operation, or not at all
//	S12  a message is published exactly if its commit lasts, or it waits behind a dead letter in the end
//	S13  messages of a key are published first in the order of their commits
//	S14  a message that has arrived takes effect once, and before it is acknowledged
//	S15  a single consumer handles messages of a key in the order in which they have arrived first
//	L1   without faults an operation ends a minute after its Wait at the latest
//	L2   without faults no caller waits for a free lock
//
// Those with C are of internal/model/call, under its numbers:
//
//	C1   a request is charged for once, until its claim is purged
//	C2   all calls of a request have one content
//	C3   a settlement has the bank's answer
//	C4   no call begins when the result is stored
//	C5   no call begins after Until
//	C6   two calls run at once only if the first has had its time
//	C7   one attempt calls once, and only for what is pending
//	C8   a reservation is pending, or settled, and not both
//	C9   a request with a claim is settled
//	C10  a pending request is settled by repeats, or listed and undecided
//	C11  no answer is that a request is done while it is pending
//
// # The model
//
// TestTraces follows schedules through package model. Two or three callers do the same on one
// key, or serve one request by Once, which gets an answer or a refusal, with the model's faults. A
// tracer names each step that a gate shows: what is sent, executed, answered and lost, and what
// callers and the monitor receive. The model keeps the set of states that it may be in. A step that
// none of these states can take is a difference between model and code; docs/guarantees.md decides
// which of them is wrong. TestTracesBite shows that the test finds a weakened model.
//
//	make sim                     # follows 6,000 schedules of rows, 2,000 of outages and 2,000 of calls, among others, always the same
//	make sim BELAY_TRACES=20000  # follows as many others
//	make sim SEED=1234           # prints the trace of one schedule of each kind, too
//
// In those of two keys a caller updates a row under each of them. Another caller does the same, in the same
// order or in the opposite one, or updates one of the rows. Each step of a lock or a row names its key. A
// transaction that has written a row takes what another caller has changed in the next one for its own change,
// if it has looked at that row before: the model does so because the code does.
//
// In those of outages the policy is DBOnly. The server of the locks goes away, or keeps nothing more, and
// comes back. Callers who get no answer go on without the lock. The first one of a process reports that an
// outage has begun. The others join it, until the process finds that locks are granted again.
//
// Among the others, about one in 5,000 of rows and of outages, and one in 1,000 of requests, has a step
// that the model lacks. The model is to be extended then. Of 10,000 of two keys none has such a step. The test
// prints the model's actions that no schedule took, and the code's steps that are no action. For 13 actions
// nothing is looked at: those of strangers, of purges, of a request under another key, of a row that is another
// request's, and of callers who are short of time. It leaves out repeats of an acquire without an answer, under
// DBOnly every acquire without one, a crash or a pause while evidence is collected, a read of a claim that is
// cut, and a crash while the outcome of a COMMIT is looked for. With two keys it leaves out lost answers of the
// engine, pauses for longer than the lease or while a lock is given back, and crashes of the database.
//
// # More
//
// To add a workload, add a line to workloads and its name to themes. A fault is an action:
// world.apply carries it out, dice.fault decides when it happens, and world.possible when it can.
// The plan has the settings of the database. A behaviour that is not promised is a witness,
// which must break. Another engine implements the methods of server, and its calls go through
// engine.call.
package sim
