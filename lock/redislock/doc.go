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
// Sentinel, and miniredis. A server of another kind than was said is refused by
// [Engine.Ping] and at the first request, with [lock.ErrDenied] and what to say instead.
//
// # Requests
//
// Every change is one Lua script with exactly one key, so that a slot may migrate under
// it. A change that may have been executed is never sent again; an error that matches
// [lock.ErrNotSent] proves that it was not. MOVED, ASK, READONLY and NOSCRIPT are such
// proofs and are followed. Acquire and Inspect retry for up to a second while the answer
// is MOVED, ASK, READONLY, CLUSTERDOWN, TRYAGAIN, LOADING, MASTERDOWN or that the server
// has its maximum of clients, and while no connection can be made or the client's pool
// has none.
//
// There is no retry after any other answer. A server that is out of memory, can't save
// or has too few replicas rejects a script before its first write: OOM, MISCONF and
// NOREPLICAS match [lock.ErrRefused], BUSY matches [lock.ErrNotSent]. A client that
// can't log in, may not run scripts or was closed gets an error that matches
// [lock.ErrDenied]. WRONGTYPE matches [lock.ErrUnusable]; so does a key that the user
// may not touch. A request about a lock that is held already gets [lock.ErrDenied] then.
//
// # The engine's own client
//
// [Open] makes a client of its own: for a cluster, for a single server, or for the master
// that Sentinel names. It gets through a failover quickly: no call hangs for longer than a
// second, each new connection asks Sentinel or the name server again, and the slot map of
// a cluster is reloaded as soon as a node refuses a connection or does not answer. It
// sends each script straight to its node. A few requests at a time go each on a
// connection of its own. When there are more, those that wait go together in one
// pipeline, while the one before is on its way. So a node has no more than a handful of
// connections, and a slow node delays no other.
//
// A breaker opens for half a second when a node refuses three connections in a row, or
// leaves five requests in a row without an answer; then one request tries the node
// again. Requests that a healthy node delays together, in one pause, are not enough: one
// of the five has begun after another had failed. While the breaker is open, all other
// requests fail at once, with an error that names the node and matches [lock.ErrNotSent].
// On a cluster, Acquire and Inspect first have the slot map reloaded, which takes up to 0.4 s, and go
// on if the lock is on another node by then.
//
// [New] takes a client as it is, with its options and hooks, and sends each request by
// itself. For a cluster, give it at least these options: DialTimeout, ReadTimeout and
// WriteTimeout of a second or less, ContextTimeoutEnabled, DialerRetries 1,
// ClusterStateReloadInterval of a second, no reads from replicas. Acquire and Inspect
// give up after five seconds; but without ContextTimeoutEnabled, a node that does not
// answer delays them for ReadTimeout.
//
// # Names in Redis
//
// Besides its lock, the key k with the prefix p may have a marker, pbelay_done:{pk}, a
// line, pbelay_line:{pk}, and a probe, pbelay_probe:{pk}, which expires after a
// millisecond: [Engine.Probe] writes it during an outage, and [Engine.Diagnose] tries its
// rights on those names of keys called doctor0, doctor1 and so on. Messages go to
// redisson_lock__channel:{pk}. A key with a hash tag, as order:{42}:items, gets no braces
// more: locks with one tag are in one slot. The names of its marker and its line have two
// colons before it, as a and {a} are two locks.
//
// A user with few rights needs these, here for the prefix app: and a server from version 7;
// Redis 6 knows no SPUBLISH, SSUBSCRIBE and SUNSUBSCRIBE:
//
//	ACL SETUSER belay on >password ~app:* &redisson_lock__channel:*
//	    +eval +evalsha +exists +hexists +hkeys +hlen +hset +hdel +pexpire +pttl +time
//	    +zadd +zcount +zpopmin +zrem +zscore +get +set +wait +ping +hello
//	    +publish +spublish +subscribe +unsubscribe +ssubscribe +sunsubscribe
//	    +cluster|slots +asking
//
// Without the right to the lines, processes get a lock in no order; without that to the
// probes, a server that rejects locks looks healthy.
//
// # Waking
//
// The release of a lock is published on the channel of the lock, with SPUBLISH on a
// cluster of Redis 7 or later and PUBLISH otherwise. A waiter subscribes to that channel:
// over one connection per master whatever the number of locks, or over a single one where
// PUBLISH reaches all. A subscription stays for a second or two after its last waiter. It
// is made again when the connection breaks, and follows a slot to its new master within
// about a second; waiters are then woken, as a message may have been missed.
//
// # Turns
//
// A message reaches all who wait at once, and the quickest would get the lock: a process
// that has just released it nearly always. So engines that wait for a lock, and are told
// of its release, stand in a line: a sorted set by the time at which each was refused
// first. A release takes the first one out and offers it the lock: the hash gets the field
// ENGINE:0 for 20 ms. An acquire of that engine takes the offer; to all others, also to
// Redisson's clients, the lock is held. An offer is nobody's hold: [Engine.Inspect] does
// not return it, and when it expires, whoever asks first gets the lock. An engine whose
// last waiter gives up leaves the line.
//
// Redisson's clients stand in no line. They show by listening: when more connections get
// the message than the engines in line have, a member * joins the line, for a turn in
// 50 ms at the earliest. In its turn the lock is free for 5 ms, in which engines that wait
// leave it alone. An engine whose callers have just stopped waiting listens for another
// second or two, so it may cost such turns that nobody takes.
//
// Acquires that do not wait, and first attempts, take any lock that is free. The line is a
// matter of order only: if it is lost or can't be written, locks exclude as before. Servers
// before 6.2 keep no lines. While its slot migrates, a line may begin anew.
//
// # Settings of the servers
//
// Run a cluster with cluster-require-full-coverage no, or every failover stops all shards
// for a moment; with a cluster-node-timeout of a few seconds, which is how long it waits
// for a dead master; and with maxmemory-policy noeviction, or locks may be evicted. A
// failover loses the locks that the promoted replica does not have yet; [Config].Replicas
// makes that rarer. It also loses the last releases: such a lock stays until its ttl has
// passed.
package redislock
