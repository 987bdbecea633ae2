package redislock

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/lock/internal/ability"
	"github.com/belaygo/belay/lock/lockengine"
)

// An Engine keeps locks in Redis, and markers. Its metrics are belay_redis_. It is safe for
// concurrent use.
//
// Close also ends the engine's subscriptions on a client that was passed to New. It takes no
// longer than the client's timeouts. When ctx ends before that, the rest ends in the background.
type Engine interface {
	lockengine.Engine
	lockengine.Waker
	lockengine.LossWatcher
	lockengine.Locator
	lockengine.Pinger
	prometheus.Collector

	doctor.Diagnoser // for belay.Doctor
	ability.Starter  // for package quorumlock
}

type engine struct {
	id       string // in lines
	self     any    // id as an argument, made once
	client   redis.UniversalClient
	owned    bool // Close closes client
	cfg      Config
	sender   sender
	starts   *starts // nil without Config.AskStart
	topology *topology
	waker    *waker
	tracker  *tracker // nil with Config.NoTracking
	metrics  *metrics
	noLines  atomic.Bool // the user has no right to lines
}

// place returns the place of a lock: the node that answered or, if that is unknown, the
// one that should have.
func (e *engine) place(name, answered string) lockengine.Place {
	p := lockengine.Place{Node: answered, Slot: -1}
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

// holderOf returns the holder in a script's reply. An ms of 0 means less than a
// millisecond, and a negative one that the lock does not expire or does not exist.
func (e *engine) holderOf(cmd *command, owner string, ms int64) lockengine.Holder {
	if ms == 0 {
		ms = 1
	}
	if isOffer(owner) {
		owner = "" // no holder
	}
	return lockengine.Holder{
		Owner: owner,
		TTL:   time.Duration(max(0, ms)) * time.Millisecond,
		Place: e.place(cmd.name, cmd.node),
	}
}
