package redislock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// unservedFor is how long a slot counts as unserved after the cluster has said so.
const unservedFor = time.Second

// unserved are the hash slots that no node of a cluster serves. The slot map lacks them, and
// go-redis returns another node at random for each request.
type unserved struct {
	some atomic.Bool // there was one
	mu   sync.Mutex
	till map[int]time.Time // by slot
	last time.Time         // of these
}

// heed notes that the lock's slot is not served, if err says so.
func (u *unserved) heed(name string, err error) {
	if err == nil || !redis.HasErrorPrefix(err, "CLUSTERDOWN Hash slot not served") {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.till == nil {
		u.till = make(map[int]time.Time)
	}
	u.last = time.Now().Add(unservedFor)
	u.till[slot(name)] = u.last
	u.some.Store(true)
}

// has reports whether no node serves the lock's slot, as far as that was said lately.
func (u *unserved) has(name string) bool {
	if !u.some.Load() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if !now.Before(u.last) {
		clear(u.till)
		u.some.Store(false)
	}
	return now.Before(u.till[slot(name)])
}
