package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

const (
	lookTime = 300 * time.Millisecond // bounds a look at the slot map
	lookPast = 100 * time.Millisecond // from its end to the next
	askTime  = 100 * time.Millisecond // for one node to tell the slot map
	askSlack = 8                      // after so many that did not, as long again
)

// looks are the looks at the slot map of a cluster, by a client of our own.
type looks struct {
	flight singleflight.Group
	ended  time.Time // the last one; guarded by flight, as is loaded
	loaded bool      // there was an answer

	answers atomic.Int64 // of nodes
	silent  atomic.Int64 // how many nodes in a row gave none
}

// refresh has the slot map reloaded, once for all who ask meanwhile, and waits
// for it until ctx ends.
func (b *bus) refresh(ctx context.Context) {
	select {
	case <-b.looks.flight.DoChan("", b.look):
	case <-ctx.Done():
	}
}

// look has the slot map reloaded. What was learnt just now will do, and after a
// look in vain it waits a little: while a node is away, the others are not asked
// by each request.
func (b *bus) look() (any, error) {
	l := &b.looks
	past := time.Since(l.ended)
	if l.loaded && past < lookPast || !rest(b.ctx, lookPast-past) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, lookTime)
	defer cancel()
	answers := l.answers.Load()
	// It reloads the map before it visits anybody, or else visits by the old one.
	_ = b.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
	l.ended, l.loaded = time.Now(), l.answers.Load() != answers
	return nil, nil
}

// close ends looking and waits for the look that is under way. The client has
// been closed, so that it waits for nobody.
func (b *bus) close() {
	b.stop()
	_, _, _ = b.looks.flight.Do("", b.look)
}

// ask asks the node at addr for the slot map. It does not wait for long, as the
// client then asks the next one; unless many said nothing: the network may be
// slow.
func (l *looks) ask(ctx context.Context, addr string, question func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, askTime*time.Duration(1+l.silent.Load()/askSlack))
	defer cancel()
	start := time.Now()
	err := question(short)
	network, ok := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		l.answers.Add(1)
		if time.Since(start) < askTime { // else the next one needs as long
			l.silent.Store(0)
		}
	case ok && network.Timeout() && ctx.Err() == nil:
		l.silent.Add(1)
		return fmt.Errorf("node %s: %w", addr, errSilent)
	}
	return err
}
