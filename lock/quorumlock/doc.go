// Package quorumlock keeps each lock on a majority of several engines. On single Redis
// servers, by lock/redislock, this is RedLock.
//
//	var nodes []lock.Engine
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
// Each node is on a server of its own, without replicas, and no two share a machine. All
// processes name the same nodes in the same order.
//
// # What it costs, and what it buys
//
// Each request is sent to all nodes: five nodes get five times the requests of one, and a
// lock that many processes want at once some more. The caller waits for the third of five
// answers. For that, a minority of the nodes may crash, be cut off or stand still, and no
// lock is lost or granted twice. A single server loses its locks when it crashes, and a
// failover loses those that the replica does not have yet.
//
// It fences nothing. A holder that stands still past its lease may write while another has
// the lock, as with every engine: let the database decide, see package dbguard.
//
// # Requests
//
// An acquire asks all nodes at once, and returns when a majority has granted the lock. What
// a refused acquire got is released. A node that does not answer within Config.NodeTimeout
// is silent; its request goes on, and a release of the same owner at that node waits for it.
//
// If a majority may have granted a lock that was not acquired, the error matches
// [lock.ErrNoAnswer]. What at most a minority has can't become a lock: it is released once
// more, or expires. Until then it counts against the other owners at those nodes. They get
// the lock as long as the rest is a majority that works.
//
// When several processes acquire a free lock at once, each may get a minority. Then the
// process that has the first of the nodes goes on, and the others release what they have.
//
// A renewal is one call for each node. A node that does not have a lock which a majority
// has is asked to grant it again.
//
// # Restarts
//
// A server that is started again without its data has forgotten for whom it voted. So a
// node does not vote until its server has been up for longer than the ttl of the lock that
// is acquired: use one ttl in all processes. It holds locks meanwhile, and renewals fill it
// again, within a third of the ttl after it answers. So servers may be restarted one after the
// other, each when the one before has been filled, without a lock being lost. If a majority was started less than a ttl ago, an acquire matches
// [lock.ErrRefused].
//
// A node tells its server's start if it is a [Starter]: lock/redislock is, with
// Config.AskStart, on a single server. Set Config.Durable if no node forgets a lock: a
// database, or Redis with appendfsync always. FLUSHALL, an eviction (set maxmemory-policy
// noeviction) and a server whose clock is set forward are not noticed.
//
// # Tokens, waiters and markers
//
// The token is the greatest of the majority's. It grows from holder to holder as long as the
// nodes' clocks agree. Waiters are notified when a majority of nodes says that the lock was
// released; there is no order among processes. Markers are set on all nodes, and one that
// has a marker is believed.
package quorumlock
