// Package etcdlock keeps locks in etcd, for services that have it already.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"10.0.0.1:2379"}})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	engine, err := etcdlock.New(client, etcdlock.Config{})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	locker, err := lock.New(engine, lock.Config{})
//
// # How a lock is kept
//
// A lock is one name in etcd, with the owner as its value. One transaction creates the name if
// it does not exist, and another deletes it if the owner is still its value. All names of one
// ttl are bound to one etcd lease of this engine. That lease lasts 4/3 of the ttl, and at least
// 2 seconds:
//
//	acquire   one transaction. Before it, the lease is kept alive if that was not done within
//	          a quarter of the ttl. A caller that waits reads the name first
//	renew     the lease is kept alive, then all locks are read, 128 at a time
//	release   one transaction
//
// A lease for each lock would cost a third write for each lock, and one message for each lock at
// each renewal. The common lease lives on as long as any lock is renewed. So the engine itself
// deletes a lock that has not been renewed for a ttl. The locks of a process that is killed are
// free when the lease ends, after 4/3 of the ttl and up to a second.
//
// When an acquire gets no answer, etcd may execute it later. So the engine takes another lease,
// once a second at most, and moves each lock to it when the lock is renewed. A lock that the acquire leaves ends with
// the old lease. The engine does the same when such a move gets no answer.
//
// A leader of etcd that stood still goes on for a moment after it was deposed. It may then end leases
// that have expired by its clock, though the next leader keeps them alive (etcd 3.7.3: its lessor
// asks the other members only if its last tick is old). It knows no lease that was granted after its
// term. Each answer shows etcd's term, so the engine takes another lease when that has grown, also
// if the answer about a new lock shows it, and moves the locks as above. It costs a lease for each
// election.
//
// The engine chooses the ids of its leases. A request for a lease that gets no answer is made again
// with the same id, so callers that give up leave no lease each.
//
// After a restore of a backup, etcd has the locks of that time again, and may keep them in a lease
// that this engine keeps alive. So the engine takes another lease when it finds that revisions have
// fallen, or that the cluster has another id. Restore with --bump-revision and
// --mark-compacted, by more revisions than etcd has counted since the backup: revisions are the
// tokens of locks, which fall otherwise. As revisions do not fall then, give the restored cluster a
// new --initial-cluster-token, too, and with it another id.
//
// # What is different from other engines
//
// Tokens are revisions of etcd, and need no clock. Locks survive the crash of a minority of
// the members. There are no markers, and Inspect does not know how long a lock lasts.
//
// The servers must be 3.4.38, 3.5.23, 3.6.5 or newer. In older ones, a leader that was stopped
// and comes back may end leases that are alive, and a renewal may succeed for a lease that has
// ended.
package etcdlock
