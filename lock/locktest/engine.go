package locktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

func ownersExcludeEachOther(c *check) {
	c.wantHolder(c.key, "")
	c.acquire(c.Engine, c.mine, longTTL)
	c.wantHolder(c.key, c.mine.Owner)
	for _, e := range []lockengine.Engine{c.Engine, c.Other} {
		if left := c.wantRefused(e, c.theirs, c.mine.Owner).TTL; left < 0 || left > longTTL {
			c.Errorf("it is held for another %v, want at most %v", left, longTTL)
		}
	}
	c.acquire(c.Other, c.request(newKey()), longTTL) // another key is free
	c.release(c.Engine, c.mine)
	c.wantHolder(c.key, "")
	c.acquire(c.Other, c.theirs, longTTL)
}

func oneOfManyGetsIt(c *check) {
	var granted atomic.Int32
	var wg sync.WaitGroup
	for i := range 32 {
		e := []lockengine.Engine{c.Engine, c.Other}[i%2]
		r := c.request(c.key)
		wg.Go(func() {
			if _, err := c.try(e, r, longTTL); err == nil {
				granted.Add(1)
			} else if _, held := errors.AsType[*lockengine.HeldError](err); !held {
				c.Errorf("Acquire: %v", err)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 1 {
		c.Errorf("%d of 32 got the lock, want 1", n)
	}
}

func askingTwiceIsOneHold(c *check) {
	c.acquire(c.Engine, c.mine, longTTL)
	c.acquire(c.Engine, c.mine, longTTL)
	c.acquire(c.another(), c.mine, longTTL)
	c.wantRefused(c.Other, c.theirs, c.mine.Owner)
	c.release(c.Engine, c.mine)
	c.wantHolder(c.key, "")
	c.acquire(c.Other, c.theirs, longTTL)
}

func onlyTheOwnerReleases(c *check) {
	c.wantIs(c.Engine.Release(c.ctx(), c.mine), lockengine.ErrNotHeld) // of a free key
	c.acquire(c.Engine, c.mine, longTTL)
	c.wantIs(c.Engine.Release(c.ctx(), c.theirs), lockengine.ErrNotHeld)
	c.wantIs(c.Other.Release(c.ctx(), c.theirs), lockengine.ErrNotHeld)
	c.wantHolder(c.key, c.mine.Owner)

	c.release(c.Other, c.mine) // the owner decides, not the process
	c.wantIs(c.Engine.Release(c.ctx(), c.mine), lockengine.ErrNotHeld)
	c.acquire(c.Other, c.theirs, longTTL)
	c.wantIs(c.Engine.Release(c.ctx(), c.mine), lockengine.ErrNotHeld)
	c.wantHolder(c.key, c.theirs.Owner)
}

func renewalsGetTheirVerdicts(c *check) {
	if errs := c.Engine.Renew(c.ctx(), nil, longTTL); len(errs) != 0 {
		c.Errorf("Renew of nothing: %v", errs)
	}
	var requests []lockengine.Request
	for i := range 99 { // mine, another's, nobody's
		r := c.request(newKey())
		requests = append(requests, r)
		switch i % 3 {
		case 0:
			c.acquire(c.Engine, r, longTTL)
		case 1:
			c.acquire(c.Other, c.request(r.Key), longTTL)
		}
	}
	errs := c.Engine.Renew(c.ctx(), requests, longTTL)
	if len(errs) != len(requests) {
		c.Fatalf("%d verdicts on %d requests", len(errs), len(requests))
	}
	for i, err := range errs {
		if mine := i%3 == 0; mine && err != nil || !mine && !errors.Is(err, lockengine.ErrNotHeld) {
			c.Errorf("verdict on hold %d: %v", i, err)
		}
	}
	for i, r := range requests {
		if i%3 == 2 {
			c.wantHolder(r.Key, "") // nothing came into being
		}
	}
}

func holdsExpire(c *check) {
	c.acquire(c.Engine, c.mine, brief)
	if left := c.wantRefused(c.Other, c.theirs, c.mine.Owner).TTL; left > brief {
		c.Errorf("it is held for another %v, want at most %v", left, brief)
	}
	c.expire()
	c.wantIs(c.Engine.Renew(c.ctx(), []lockengine.Request{c.mine}, brief)[0], lockengine.ErrNotHeld)
	c.wantIs(c.Engine.Release(c.ctx(), c.mine), lockengine.ErrNotHeld)
	c.acquire(c.Other, c.theirs, longTTL)
	c.wantIs(c.Engine.Renew(c.ctx(), []lockengine.Request{c.mine}, brief)[0], lockengine.ErrNotHeld)
	c.wantHolder(c.key, c.theirs.Owner)
}

// A renewal counts from when it is made, and so does asking again.
func renewalProlongs(c *check) {
	again := c.request(newKey())
	c.acquire(c.Engine, c.mine, brief)
	c.acquire(c.Engine, again, brief)
	if err := c.another().Renew(c.ctx(), []lockengine.Request{c.mine}, longTTL)[0]; err != nil {
		c.Fatalf("Renew: %v", err)
	}
	c.acquire(c.Engine, again, longTTL)
	c.age(brief + brief/4)
	c.wantHolder(c.key, c.mine.Owner)
	c.wantHolder(again.Key, again.Owner)
}

// Renewals of one lock may overlap. All of them succeed, none takes back what another gave, and none
// outlives the release.
func renewalsMayOverlap(c *check) {
	c.acquire(c.Engine, c.mine, brief)
	var wg sync.WaitGroup
	for i := range 16 {
		e := []lockengine.Engine{c.Engine, c.another()}[i%2]
		wg.Go(func() {
			if err := e.Renew(c.ctx(), []lockengine.Request{c.mine}, longTTL)[0]; err != nil {
				c.Errorf("Renew: %v", err)
			}
		})
	}
	wg.Wait()
	c.age(brief + brief/4)
	c.wantHolder(c.key, c.mine.Owner)
	c.release(c.Engine, c.mine)
	c.awaitFree(c.key)
	c.acquire(c.Other, c.theirs, longTTL)
}

func refusalDoesNotProlong(c *check) {
	c.acquire(c.Engine, c.mine, brief)
	c.wantRefused(c.Other, c.theirs, c.mine.Owner)
	c.wantIs(c.Other.Renew(c.ctx(), []lockengine.Request{c.theirs}, longTTL)[0], lockengine.ErrNotHeld)
	c.expire()
}

// A lock that is to last for less than a millisecond is not granted, and no renewal ends one so.
func noTimeIsRefused(c *check) {
	held := c.request(newKey())
	c.acquire(c.Engine, held, longTTL)
	for _, ttl := range []time.Duration{-time.Second, 0, time.Millisecond - 1} {
		_, err := c.Engine.Acquire(c.ctx(), c.mine, ttl)
		c.wantIs(err, lockengine.ErrDenied)
		c.wantIs(c.Engine.Renew(c.ctx(), []lockengine.Request{held}, ttl)[0], lockengine.ErrDenied)
	}
	c.wantHolder(c.key, "")
	c.wantHolder(held.Key, held.Owner)
}

// Nothing is granted under a context that has ended, and the methods return.
func endedContext(c *check) {
	ctx := c.ended()
	_, err := c.Engine.Acquire(ctx, c.mine, longTTL)
	c.wantIs(err, context.Canceled)
	_ = c.Engine.Release(ctx, c.mine)
	_ = c.Engine.Renew(ctx, []lockengine.Request{c.mine}, longTTL)
	_, _ = c.Engine.Inspect(ctx, c.key)
	_ = c.Engine.Release(c.ctx(), c.mine) // if it was sent nevertheless
	c.acquire(c.Other, c.theirs, longTTL)
}

// maxKeyLen is the greatest length of a key that a Locker passes on, in bytes.
const maxKeyLen = 512

func keysAreTakenAsTheyAre(c *check) {
	keys := []string{c.key}
	for _, tail := range []string{
		" ", "\n", "\x00", ":", "*", "?[a]", "订单:7", "a b\r\nDEL k\r\n", `"'\`, "K", "k",
		strings.Repeat("k", maxKeyLen-len(c.key)),
	} {
		keys = append(keys, c.key+tail)
	}
	for _, key := range keys {
		r := c.request(key)
		c.wantHolder(key, "") // none of the others is the same
		c.acquire(c.Engine, r, longTTL)
		c.wantRefused(c.Other, c.request(key), r.Owner)
		c.wantHolder(key, r.Owner)
	}
}

func ownersAreTakenAsTheyAre(c *check) {
	c.acquire(c.Engine, c.mine, longTTL)
	for _, owner := range []string{c.mine.Owner + " ", strings.ToLower(c.mine.Owner), c.mine.Owner[1:]} {
		r := lockengine.Request{Key: c.key, Owner: owner}
		c.wantRefused(c.Other, r, c.mine.Owner)
		c.wantIs(c.Engine.Renew(c.ctx(), []lockengine.Request{r}, longTTL)[0], lockengine.ErrNotHeld)
		c.wantIs(c.Other.Release(c.ctx(), r), lockengine.ErrNotHeld)
	}
	c.wantHolder(c.key, c.mine.Owner)
}

func engineTokensGrow(c *check) {
	var last int64
	for i := range 100 {
		e := []lockengine.Engine{c.Engine, c.Other}[i%2]
		r := c.request(c.key)
		token := c.acquire(e, r, longTTL).Token
		if token < last+1024 {
			c.Fatalf("token %d after %d, want it to be greater by 1024", token, last)
		}
		last = token
		c.release(e, r)
	}
}

func placesAreNamed(c *check) {
	place := c.acquire(c.Engine, c.mine, longTTL).Place
	holder, err := c.Other.Inspect(c.ctx(), c.key)
	if err != nil {
		c.Fatalf("Inspect: %v", err)
	}
	refused := c.wantRefused(c.Other, c.theirs, c.mine.Owner)
	for what, p := range map[string]lockengine.Place{"Acquire": place, "Inspect": holder.Place, "a refusal": refused.Place} {
		if p.Node == "" || p.Node != place.Node || p.Slot != place.Slot || (p.Slot >= 0) != c.Slots {
			c.Errorf("the place that %s tells is %+v", what, p)
		}
	}
}

// A probe succeeds whoever holds the key, beside other probes of it, and changes
// nothing of the lock.
func probeTakesNothing(c *check) {
	var wg sync.WaitGroup
	for i := range 16 {
		e := []lockengine.Engine{c.Engine, c.Other}[i%2]
		p, ok := e.(lockengine.Pinger)
		if !ok {
			c.Fatalf("a %T is no lockengine.Pinger", e)
		}
		wg.Go(func() {
			if err := p.Probe(c.ctx(), c.key); err != nil {
				c.Errorf("Probe of a free key: %v", err)
			}
		})
	}
	wg.Wait()
	c.wantHolder(c.key, "")
	c.acquire(c.Other, c.mine, longTTL)
	if err := c.Engine.(lockengine.Pinger).Probe(c.ctx(), c.key); err != nil {
		c.Errorf("Probe of a held key: %v", err)
	}
	c.wantHolder(c.key, c.mine.Owner)
	c.wantIs(c.Engine.(lockengine.Pinger).Probe(c.ended(), c.key), context.Canceled)
}
