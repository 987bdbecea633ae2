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
// A lock is two ephemeral nodes, which are created and deleted together. The first has a fixed
// path for its key, and the owner as its data. The name of the second is made of the key and the
// owner. An owner has the lock as long as the second node exists:
//
//	acquire   one request creates both, or neither. A caller that waits reads the first node
//	          before that
//	renew     one request checks the second nodes of all locks
//	release   one request deletes both, or neither
//
// A majority of the servers agrees on each of these requests. So a leader that stood still, and
// was replaced meanwhile, can't answer them. A release can't delete the lock of the next owner,
// because the second node of that has another name. The version of a node would not prevent that:
// each new node begins with version 0.
//
// All locks of an engine live in one session. The engine deletes a lock that was not renewed for
// a ttl, and a lock that may be left by an acquire without an answer.
//
// # The session
//
// If the session is lost, all its locks are lost, and their next renewal reports it. Until then
// the deadlines of the leases count. The leader ends a session when it has not been used for its
// timeout. But a server reports to the leader only twice a tick which sessions were used. So a ttl
// may be at most three quarters of the session timeout: an acquire or a renewal with a longer one
// fails with [lockengine.ErrDenied]. If a process stood still, the engine opens a new connection, which
// prolongs the session, before it acquires or renews.
//
// The locks of a process that is killed are free when its session has expired: after
// Config.SessionTimeout, not after the ttl.
//
// To end a lock by hand, delete both of its nodes, that of the owner first: a renewal finds the loss
// by that one, and others can acquire the lock when the other one is deleted.
//
// When a session goes on with another connection, the engine deletes the locks in it that nobody
// holds. There are such locks after a restore of a backup, and they would stay as long as the
// process lives. It needs ZooKeeper 3.6. After an outage of all servers, the engine also accepts
// servers that are behind what it has seen, as restored ones are.
//
// A request is written to a connection at once, or not sent: it never waits for a connection
// that may belong to another session.
//
// # What is different from other engines
//
// Tokens are made of ZooKeeper's transaction numbers, and need no clock. Locks survive the
// crash of a minority of the servers. Only the engine that acquired a lock can renew it. There are
// no markers, and Inspect does not know how long a lock lasts. Curator's locks are other nodes, so
// its clients and Belay's do not exclude each other.
package zklock
