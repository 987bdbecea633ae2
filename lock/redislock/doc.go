// Package redislock keeps locks in Redis the way Redisson's RLock does: a hash
// at the lock's name whose one field is the owner, with an expiry. Java
// services with Redisson and Go services with Belay exclude each other on the
// same names.
//
// Every change is one Lua script with exactly one key, so that a slot may
// migrate under it. A change that was sent is never sent again, except after a
// refusal that proves that it was not executed (MOVED, ASK, READONLY,
// NOSCRIPT): whoever gets another error knows that the script ran at most once.
//
// [Open] makes a cluster client of its own with options that get through a
// failover quickly: it reloads the slot map as soon as a node refuses a
// connection, and no call hangs for longer than a second. Let the cluster run
// with cluster-require-full-coverage no, or every failover stops all shards for
// a moment, and with maxmemory-policy noeviction, or locks may be evicted.
package redislock
