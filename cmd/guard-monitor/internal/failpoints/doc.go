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
// make failpoints runs all situations on all databases.
package failpoints
