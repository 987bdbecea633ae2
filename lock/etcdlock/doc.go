// Package etcdlock keeps locks in etcd, for services that have it already.
//
// # How a lock is kept
//
// A lock is one name in etcd, with the owner as its value. A transaction creates the name if
// it is not there, another deletes it if the owner is still its value. All names of one ttl
// are bound to one lease of this engine, which lasts for a third longer than that, at least
// 2 seconds:
//
//	acquire   the lease is kept alive, unless it was within a quarter of the ttl; then one
//	          transaction. Who waits reads first
//	renew     the lease is kept alive, then all locks are read, 128 at a time
//	release   one transaction
//
// A lease of each lock's own would cost a third write, and a stream's message for each at
// each renewal. As the lease lives on with other locks, the engine itself deletes a lock that
// nobody has renewed for a ttl. The locks of a process that is killed are free when the lease
// ends, after 4/3 of the ttl and up to a second.
//
// When an acquire gets no answer, etcd may execute it later. The engine takes another lease
// then, and binds each lock to that when it is renewed. What the acquire leaves ends with the
// old lease.
//
// # What is different from other engines
//
// Tokens are revisions of etcd, and need no clock. Locks survive the crash of a minority of
// the members. There are no markers, and Inspect does not know how long a lock lasts. The
// servers must be 3.4.38, 3.5.23, 3.6.5 or newer: before, a stopped leader could end leases
// that were alive, and a renewal could succeed for a lease that had been ended.
package etcdlock
