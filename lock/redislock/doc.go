// Package redislock keeps locks in Redis, in the format of Redisson's RLock.
//
//	opts, err := redislock.ParseURL("redis+cluster://10.0.0.1:6379,10.0.0.2:6379")
//	if err != nil {
//		return err
//	}
//	engine, err := redislock.Open(opts, redislock.Config{})
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//
//	locker, err := lock.New(engine, lock.Config{})
//	if err != nil {
//		return err
//	}
//	defer locker.Close(ctx)
//
// A lock is a hash at the lock's name whose one field is the owner, with an expiry. Java
// services with Redisson and Go services with Belay exclude and wake each other on the
// same names. The engine works with a Redis Cluster, a single server, servers under
// Sentinel, and miniredis. Ping and the first request reject a server of
// another kind than configured, with [lockengine.ErrDenied] and the right setting.
//
// # Requests
//
// Every change is one Lua script. Its keys are the lock and, where order matters, the lock's
// line. While a slot migrates, the two may be at different nodes (TRYAGAIN): then the script
// is sent again with the lock alone. The scripts follow the rules of providers' proxies, which
// docs/setup.md lists.
//
// A change that may have been executed is never sent again; an error that matches
// [lockengine.ErrNotSent] proves that it was not. MOVED, ASK, READONLY and NOSCRIPT are such
// proofs and are followed. Acquire and Inspect retry for up to a second while the answer
// is MOVED, ASK, READONLY, CLUSTERDOWN, TRYAGAIN, LOADING, MASTERDOWN or that the server
// has its maximum of clients, and while no connection can be made, one end rejects the
// other's certificate, or the client's pool has no free connection.
//
// There is no retry after any other answer. A server that is out of memory, cannot save or
// has too few replicas rejects a script before its first write: OOM, MISCONF and
// NOREPLICAS match [lockengine.ErrRefused], BUSY matches [lockengine.ErrNotSent]. A client that cannot
// log in, may not run scripts or was closed gets an error that matches [lockengine.ErrDenied],
// and so does one whose script a proxy rejects by its text. WRONGTYPE matches
// [lockengine.ErrUnusable]; so does a key that the user may not touch, except for a request
// about a held lock, which gets [lockengine.ErrDenied].
//
// # The engine's own client
//
// [Open] makes a client: for a cluster, for a single server, or for the master that
// Sentinel names. It gets through a failover quickly: no call hangs for longer than a
// second, each new connection queries Sentinel or the name server again, and the slot map
// of a cluster is reloaded as soon as a node refuses a connection or does not answer. A call
// that waits for an answer does not notice that its context is cancelled, because go-redis
// looks at deadlines alone: it returns at the timeout. The engine
// sends each script straight to its node. Up to eight requests at a time have a connection
// each. Further ones wait for the pipeline before theirs, and go together in the next. So
// a node has only a handful of connections, and a slow node delays no other.
//
// A breaker opens for half a second when a node refuses three connections in a row, or
// leaves five requests in a row without an answer; then one request tries the node
// again. Requests that a healthy node delays together, in one pause, are not enough: one
// of the five has begun after another had failed. While the breaker is open, all other
// requests fail at once, with an error that names the node and matches [lockengine.ErrNotSent].
// On a cluster, Acquire and Inspect first reload the slot map, which takes up to 0.4 s, and
// continue if the lock is on another node by then.
//
// [New] uses a client as it is, with its options and hooks, and sends each request
// alone. For a cluster, give it at least these options: DialTimeout, ReadTimeout and
// WriteTimeout of a second or less, ContextTimeoutEnabled, DialerRetries 1,
// ClusterStateReloadInterval of a second, no reads from replicas. Acquire and Inspect
// give up after five seconds; but without ContextTimeoutEnabled, a node that does not
// answer delays them for ReadTimeout.
//
// # Names in Redis
//
// Besides its lock, the key k with the prefix p may have a marker, pbelay_done:{pk}, a
// line, pbelay_line:{pk}, and a probe, pbelay_probe:{pk}, which expires after a
// millisecond: Probe writes it during an outage, and belay.Doctor tries its
// rights on those names of keys called doctor0, doctor1 and so on. Messages go to
// redisson_lock__channel:{pk}. A key with a hash tag, as order:{42}:items, gets no braces
// more: locks with one tag are in one slot. The names of its marker and its line have two
// colons before it, because a and {a} are two locks.
//
// A user with few rights needs these, here for the prefix app: and a server from version 7;
// Redis 6 knows no SPUBLISH, SSUBSCRIBE and SUNSUBSCRIBE:
//
//	ACL SETUSER belay on >password ~app:* &redisson_lock__channel:* &__redis__:invalidate
//	    +eval +evalsha +exists +hexists +hkeys +hlen +hset +hdel +pexpire +pttl +time
//	    +zadd +zcount +zpopmin +zrem +zscore +get +set +wait +ping +hello
//	    +publish +spublish +subscribe +unsubscribe +ssubscribe +sunsubscribe
//	    +cluster|slots +asking +client|tracking +client|id
//
// Without the right to the lines, processes get a lock in no order: the first refusal ends
// their use until the engine is closed. Without the right to the probes, a server that
// rejects locks looks healthy. Without those to CLIENT TRACKING, CLIENT ID and
// __redis__:invalidate, only renewals find losses.
//
// # Waking
//
// The release of a lock is published on the channel of the lock, with SPUBLISH on a
// cluster of Redis 7 or later and PUBLISH otherwise. A waiter subscribes to that channel:
// over one connection per master whatever the number of locks, or over a single one where
// PUBLISH reaches all. A subscription stays for a second or two after its last waiter. It
// is made again when the connection breaks, and follows a slot to its new master within
// about a second. Waiters are woken after that, as a message may have been missed.
//
// # Losses
//
// A lock that somebody deletes, flushes or overwrites is lost. The server reports that at
// once, by the tracking of client-side caching: the engine sends a HEXISTS for each lock
// that is held for longer than 100 ms, and the server reports the next change of that key.
// The engine checks the lock again. If it is gone, the Locker renews it at once, and ends
// the lease if the lock has another owner or none.
//
// This takes two connections per master, whatever the number of locks; and one HEXISTS and
// one message for each renewal, which is a change, too. Locks are checked in batches of
// 512, all of them after a connection was lost. A server that tracks fewer keys than there
// are locks (tracking-table-max-keys, a million by default) reports one for each new one:
// on average a lock is checked in vain each two seconds at most.
//
// The next renewal, a third of the ttl later at most, finds a loss while the connections
// are down, while a slot migrates, within 100 ms of the grant, and if the server refuses
// tracking. Servers before version 6 and some proxies do; it is logged once and tried again
// each minute. [Config].NoTracking turns it off. Packages switchlock and quorumlock pass
// reports of losses on.
//
// # Turns
//
// A message reaches all waiters at once, and the quickest would get the lock: nearly
// always the process that has just released it. So engines that wait for a lock, and are
// subscribed to its release, stand in a line: a sorted set by the time of each one's first
// refusal. A release takes the first one out and offers it the lock: the hash gets the
// field ENGINE:0 for 20 ms. An acquire of that engine takes the offer; to all others, also
// to Redisson's clients, the lock is held. An offer is no hold: Inspect does not
// return it, and when it expires, the first acquire gets the lock. An engine whose last
// waiter gives up leaves the line.
//
// Redisson's clients stand in no line. Their subscriptions show that they wait: when more
// connections get the message than the engines in line have, a member * joins the line,
// for a turn in 50 ms at the earliest. In its turn the lock is free for 5 ms, in which
// engines that wait leave it alone. An engine whose callers have just stopped waiting
// listens for another second or two, so it may cause such turns without a taker.
//
// Acquires that do not wait, and first attempts, take any lock that is free. The line is a
// matter of order only: if it is lost or cannot be written, locks exclude as before.
// Servers before 6.2 keep no lines. While its slot migrates, a lock may be acquired in no
// order.
//
// # Settings of the servers
//
// Run a cluster with cluster-require-full-coverage no, or every failover stops all shards
// for a moment; with a cluster-node-timeout of a few seconds, the time that it waits for
// a dead master; and with maxmemory-policy noeviction, or locks may be evicted. A
// failover loses the locks that the promoted replica does not have yet; [Config].Replicas
// makes that rarer. It also loses the last releases: such a lock stays until its ttl has
// passed.
package redislock
