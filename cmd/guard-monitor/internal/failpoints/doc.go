// Package failpoints has a process die at every step at which a lock failure, a commit
// or an event could be lost, and checks what is left.
//
// The test program starts itself again as an instance of a service, or as a monitor, with
// one fail.Point armed. That process kills itself there. Then fresh processes carry on, as
// a cluster would have them: the same request comes again, another relay publishes, a new
// monitor starts on the same store. The oracle reads the rows, the lock in Redis, the
// outbox, the monitor's store and the messages to people.
//
// A situation is a story in which an instance passes points in a known order. So for each
// point it is known, and not only bounded, what a death there leaves: whether the
// operation has taken effect, and whether its event is stored. An event that is lost
// because its process died is excused by a blind spot that docs/guarantees.md names, and
// by nothing else. A death that does not happen is a violation, too.
//
// The operations with parts of their own are a transfer (two keys), a crew, one of
// callers who serve requests, a request and one that is refused. What a request may die at is, in its order: locked (lock/granted,
// guard/second-key), begun (dbtx/begun), claimed (guard/claimed), its operation has written
// (dbtx/updated), its answer is in (guard/answered), COMMIT is sent and not answered (the
// situation "answer lost"), committed (dbtx/committed), released (lock/release-answered).
// What is lost later, on the way of the answer to a client, leaves the same behind. A
// refusal may also die between its two transactions (guard/refusing). The request is made
// again three times, by two processes: all answers are equal.
//
// A payment is a guard.Call, and its situations are the rows of its crash table: before and behind each of
// its two COMMITs, in its call, with either COMMIT or its answer lost, after an answer that is not settled,
// with the lock lost, overtaken, and later than Until. After the death the rows of belay_pending and the calls that the
// provider has seen are those of the table, and at the end all calls have had one id.
//
// A relay dies at each step between the lease of a lane and the deletion of what was sent, and so does the
// command that decides a dead letter. Its messages go to an inbox. Each has arrived once at the end, in
// the order in which they were sent, and the message of an operation that was rolled back has not.
//
// make failpoints runs all situations on all databases.
package failpoints
