// Package quorumlock keeps each lock on a majority of several engines, so that locks survive the
// crash of a server. On single Redis servers, by lock/redislock, this is RedLock.
//
//	var nodes []lockengine.Engine
//	for _, url := range []string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"} {
//		opts, err := redislock.ParseURL(url)
//		if err != nil {
//			return err
//		}
//		node, err := redislock.Open(opts, redislock.Config{AskStart: true})
//		if err != nil {
//			return err
//		}
//		defer node.Close(ctx)
//		nodes = append(nodes, node)
//	}
//	engine, err := quorumlock.New(nodes, quorumlock.Config{})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	locker, err := lock.New(engine, lock.Config{})
//
// Each node is an engine on a server of its own, without replicas, and each server runs on a
// machine of its own. All processes must name the same nodes in the same order.
//
// # What it costs, and what it buys
//
// Each request is sent to all nodes: five nodes get five times the requests of one. If many
// processes acquire one lock at once, they get some more. The caller waits for a majority of the
// answers, which is three of five. In return, a minority of the nodes may crash, be cut off or
// stand still: no lock is granted twice, and a lock that all nodes have is not lost. A single
// server loses its locks when it crashes, and a failover loses those that the replica does not
// have yet.
//
// When callers compete, a lock may be granted by a bare majority. It is lost if one of these nodes
// starts again without it before a renewal has filled the others. With nodes that report losses, as
// lock/redislock does, a renewal fills them once the lock has been held for 100 ms. Otherwise it
// does so a third of the ttl after the grant.
//
// The engine does not stop a holder that stands still past its lease and writes then, while
// another caller has the lock. No engine does. The database must decide: see package dbguard.
//
// # Requests
//
// An acquire is sent to all nodes at once, and returns when a majority has granted the lock. If
// the acquire is refused, the lock is released at the nodes that have granted it, and nobody is
// notified of that: a process that waits for a key tries again after 10 to 50 ms. A node that
// does not answer within Config.NodeTimeout counts as silent. Its request may still be executed,
// so a later release by the same owner is sent to that node after it.
//
// If a majority may have granted a lock that was not acquired, the error matches
// [lockengine.ErrNoAnswer]. A grant at a minority can't become a lock: it is released once more, or
// expires. Until then other owners can't get those nodes. They get the lock if the other nodes
// are a majority that works.
//
// When several processes acquire a free lock at once, each may get only a minority. Then the
// process that has the first node goes on, and the others release what they have.
//
// A renewal is one call to each node. If a majority has a lock and a node does not, that node is
// asked to grant it again. A node that reports the loss of a lock brings the renewal forward: if a
// majority has lost it, the lease ends.
//
// # Restarts
//
// A server that was started again without its data has lost the locks that it granted. So a
// node does not vote until its server has been up for longer than the ttl of the lock that is
// acquired. That is safe only if all processes use the same ttl. A node that does not vote holds
// locks all the same, and a renewal fills it again within a third of the ttl after it answers. So
// servers may be restarted one after the other, and a lock that all nodes have is not lost: wait
// until the last one has been filled before you restart the next one. If a majority was started
// less than a ttl ago, an acquire fails with [lockengine.ErrRefused].
//
// So a node must report when its server started, as an engine of lock/redislock does on a single
// server, with Config.AskStart. An engine of your own does so by the method
//
//	Started() (time.Time, error)
//
// which returns the time by the clock of this process, rather too late than too early, and the zero
// time until a server has answered. After a call has been answered, the time is that of the server
// that answered, or of one that started later. A server that follows another one has not started
// before that one answered, whatever its clock says. Started does not block, and is safe for concurrent
// use; it returns an error if it cannot know the time. Or set Config.Durable if no
// node forgets a lock: a database, or Redis with appendfsync always. A server votes all the same after
// a FLUSHALL, after an eviction (set maxmemory-policy noeviction), or if its clock is set forward
// while it has locks. It also votes too early if its clock was set forward since its start and the
// process that acquires has not reached the server before that start: start Redis after
// time-sync.target.
//
// # Tokens, waiters and markers
//
// The token is the greatest of those that a majority has granted. It grows from holder to holder
// as long as the nodes' clocks agree. Waiters are woken when a majority of the nodes notifies of
// the release; there is no order among processes. Markers are set on all nodes, and a key counts
// as marked if one node has its marker.
package quorumlock
