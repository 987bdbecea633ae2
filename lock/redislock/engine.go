package redislock

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// An Engine is a lock.Engine on Redis, a lock.Waker, a lock.Locator, a lock.Pinger and a
// prometheus.Collector. It is safe for concurrent use.
type Engine struct {
	id       string // in lines
	client   redis.UniversalClient
	owned    bool // Close closes client
	cfg      Config
	sender   sender
	starts   *starts // nil without Config.AskStart
	topology *topology
	waker    *waker
	metrics  *metrics
}

// place is where a lock is kept: at the node that answered, or, when that did not
// say its name, at the one that should have.
func (e *Engine) place(name, answered string) lock.Place {
	p := lock.Place{Node: answered, Slot: -1}
	if e.topology.shards {
		p.Slot = slot(name)
	}
	if p.Node == "" {
		p.Node = e.topology.known(name)
	}
	if e.cfg.Prefix != "" {
		p.Entry = name
	}
	return p
}

// holderOf is what a script returned about a lock. No time left means less than a
// millisecond; a negative one, that the lock does not expire or is not there.
func (e *Engine) holderOf(cmd *command, owner string, ms int64) lock.Holder {
	if ms == 0 {
		ms = 1
	}
	if isOffer(owner) {
		owner = "" // nobody has it
	}
	return lock.Holder{
		Owner: owner,
		TTL:   time.Duration(max(0, ms)) * time.Millisecond,
		Place: e.place(cmd.name, cmd.node),
	}
}
