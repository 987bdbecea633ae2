package watch

import (
	"context"
	"sync"
	"time"
)

// maxPending bounds the entries that wait for Record.
const maxPending = 1000

// run looks until ctx ends. It calls looked after the first round.
func (t *target) run(ctx context.Context, looked func()) {
	defer looked()
	defer t.close()
	tick := time.NewTicker(t.Every)
	defer tick.Stop()
	last := time.Now()
	for ctx.Err() == nil {
		r := t.look(ctx)
		if ctx.Err() != nil {
			return
		}
		// A round takes a timeout at most, and comes after Every: what is far
		// above that is this process' or this host's own delay.
		// So is what only the wall clock shows: a steady clock may stand still while
		// the host sleeps.
		limit := 2*t.Every + time.Second
		r.blind = r.ended.Sub(last) > limit || r.ended.Round(0).Sub(last.Round(0)) > limit
		last = r.ended
		t.take(ctx, r)
		looked()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// take compares a round with the last, and hands over what has changed.
func (t *target) take(ctx context.Context, r *round) {
	t.warn(r)
	t.pending = append(t.pending, t.state.compare(r)...)
	t.roster = t.next(r)
	t.publish(t.state)
	if len(t.pending) == 0 {
		return
	}
	log := t.Logger
	if err := t.Record(ctx, t.pending); err != nil {
		log.Warn("timeline not recorded", "redis", t.cfg.Name, "entries", len(t.pending), "error", err)
		if n := len(t.pending) - maxPending; n > 0 {
			log.Error("timeline entries dropped", "redis", t.cfg.Name, "entries", n)
			t.pending = t.pending[n:]
		}
		return
	}
	for _, e := range t.pending {
		log.Info("redis changed", "redis", e.Cluster, "kind", string(e.Kind), "node", e.Node, "peer", e.Peer,
			"shard", e.Shard, "numbers", e.Numbers, "names", e.Names)
	}
	t.pending = nil
}

// warn logs the nodes that begin to forbid a query, with the error, and that the
// Sentinels no longer name a master.
func (t *target) warn(r *round) {
	if r.leaderless != nil && !t.leaderless {
		t.Logger.Warn("no sentinel names a master", "redis", t.cfg.Name, "error", r.leaderless)
	}
	t.leaderless = r.leaderless != nil
	for addr, l := range r.looks {
		if n := t.state.nodes[addr]; l.denied && (n == nil || n.Error != l.err.Error()) {
			t.Logger.Warn("redis refuses guard-monitor", "redis", t.cfg.Name, "node", addr, "error", l.err)
		}
	}
}

// look queries all nodes at once.
func (t *target) look(ctx context.Context) *round {
	r := &round{looks: make(map[string]*look), mode: t.state.Mode}
	if t.cfg.Master != "" {
		r.mode = Sentinel
		t.sentinel(ctx, r)
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout())
	defer cancel()
	var wg sync.WaitGroup
	for _, addr := range t.roster {
		c, l := t.client(addr), new(look)
		r.looks[addr] = l
		clustered, was := t.state.Mode == Clustered, t.state.nodes[addr]
		wg.Go(func() { *l = ask(ctx, c, clustered, was) })
	}
	wg.Wait()
	r.ended = time.Now()
	for addr, l := range r.looks {
		if l.err != nil {
			t.drop(addr)
		}
		switch {
		case l.err != nil || r.mode == Sentinel:
		case l.info["redis_mode"] == "cluster":
			r.mode = Clustered
		case r.mode == Undetermined:
			r.mode = Single
		}
	}
	t.announce(r)
	return r
}

// announce files what a node said under the address that the nodes have for it.
func (t *target) announce(r *round) {
	for addr, l := range r.looks {
		me, ok := l.me()
		if !ok || me.addr == addr || !usable(me.addr) {
			continue
		}
		delete(r.looks, addr)
		if r.looks[me.addr] == nil || r.looks[me.addr].err != nil {
			r.looks[me.addr] = l
		}
	}
}

// next returns the nodes to query in the next round: those that any node knows, or
// the configured ones while none answers.
func (t *target) next(r *round) []string {
	seen := make(map[string]bool)
	var list []string
	add := func(addr string) {
		if usable(addr) && !seen[addr] && len(list) < maxNodes {
			seen[addr] = true
			list = append(list, addr)
		}
	}
	answered := false
	for addr, l := range r.looks {
		if l.err != nil {
			continue
		}
		answered = true
		add(addr)
		for _, m := range l.view {
			if !m.myself {
				add(m.addr)
			}
		}
	}
	if r.mode == Sentinel {
		for addr := range r.looks {
			add(addr)
		}
	}
	if !answered || r.mode == Single {
		for _, addr := range t.cfg.Addrs {
			if r.mode != Sentinel {
				add(addr)
			}
		}
	}
	if !answered {
		for _, addr := range t.roster {
			add(addr)
		}
	}
	t.retain(seen)
	return list
}
