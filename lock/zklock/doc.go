// Package zklock keeps locks in ZooKeeper, for services that have it already.
//
//	engine, err := zklock.New(zklock.Config{Servers: []string{"zk1:2181", "zk2:2181", "zk3:2181"}})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(context.Background())
//	locker, err := lock.New(engine, lock.Config{})
//
// # How a lock is kept
//
// A lock is two ephemeral nodes that come and go together: one at a fixed path with the owner
// as its data, and one whose name is made of the key and the owner. As long as the second one
// is there, its owner has the lock:
//
//	acquire   one request creates both, or neither. Who waits reads first
//	renew     one request checks the owners' nodes of all locks
//	release   one request deletes both, or neither
//
// All of these are agreed on by a majority of the servers. A leader that stood still, and was
// deposed meanwhile, can answer none of them. A release can't delete the lock of the next
// owner, as a node's version would allow: it begins with 0 again.
//
// All locks of an engine live in one session. The engine itself deletes a lock that nobody has
// renewed for a ttl, and one that an acquire without an answer may have left.
//
// # The session
//
// If the session is lost, so are all its locks, and their next renewal says so. Until then
// their deadlines decide. The servers count a session's timeout from when their leader hears
// of it, and servers report that to the leader twice a tick. So a ttl may be three quarters
// of the session timeout at most. A process that stood still has its session prolonged by a new
// connection before it acquires or renews.
//
// The locks of a process that is killed are free when its session has expired: after
// Config.SessionTimeout, and not after the ttl.
//
// A request is written to a connection at once, or not at all: none waits for a connection
// that may belong to another session.
//
// # What is different from other engines
//
// Tokens are made of ZooKeeper's transaction numbers, and need no clock. Locks survive the
// crash of a minority of the servers. A lock can be renewed only by the engine that took it.
// There are no markers, and Inspect does not know how long a lock lasts. Curator's locks are
// other nodes: its clients and Belay's do not exclude each other.
package zklock
