package redislock

import "strings"

// lockName is the name of a key's lock in Redis.
func (e *engine) lockName(key string) string { return e.cfg.Prefix + key }

// beside returns the name of another key of a lock, such as its marker: in the lock's
// slot, and under the engine's prefix, for users with no other rights. The locks a and {a}
// have different names.
func (e *engine) beside(what, name string) string {
	if strings.Contains(name, "{") {
		return e.cfg.Prefix + "belay_" + what + "::" + name
	}
	return e.cfg.Prefix + "belay_" + what + ":{" + name + "}"
}

// channel is where Redisson clients listen for the release of a lock.
func channel(name string) string {
	if strings.Contains(name, "{") {
		return "redisson_lock__channel:" + name
	}
	return "redisson_lock__channel:{" + name + "}"
}

// tagged returns name with the hash tag that decides its slot: its own, or the whole name.
func tagged(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}
