package guard

import (
	"context"
	"time"

	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
)

func init() { inside.Register(func(g any) inside.View { return view{g.(*Guard)} }) }

// A view shows a Guard to the tests in guard/promises.
type view struct{ g *Guard }

func (v view) Acquire(ctx context.Context, key string) (*lock.Lease, error) {
	return v.g.layer.locker.Acquire(ctx, key)
}

func (v view) StepClock(d time.Duration) { v.g.clock.Step(d) }
func (v view) LookForUndecided() error   { return v.g.calls.look(v.g.db) }

func (v view) Lines() int {
	lines := &v.g.crews.lines
	lines.mu.Lock()
	defer lines.mu.Unlock()
	return len(lines.of)
}

func (v view) Queued(key string) int {
	lines := &v.g.crews.lines
	lines.mu.Lock()
	defer lines.mu.Unlock()
	if at := lines.of[key]; at != nil {
		return len(at.queue)
	}
	return 0
}

func (v view) TurnLimit(d time.Duration) { v.g.crews.turnTime = d }
func (v view) NoTurnLimit()              { v.TurnLimit(time.Hour) }

func (v view) PassAfter(d time.Duration)  { v.g.gate.longest = d }
func (v view) KeepPlaces(d time.Duration) { v.g.gate.onTheWay = d }
func (v view) AtGate() int                { return int(v.g.gate.queued.Load()) }
func (v view) Begins() int                { return int(v.g.gate.begins.Load()) }

func (v view) FailOver() {
	c := v.g.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.servers = dbtx.Server{Name: "former"}, nil
	for i := range c.claims {
		c.claims[i].server = &dbtx.Server{Name: "former"}
	}
}

func (v view) Found() (n int) {
	c := v.g.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.claims {
		if k.server.Name != "former" {
			n++
		}
	}
	return n
}

func (v view) Age(d time.Duration) {
	c := v.g.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.claims {
		k := &c.claims[i]
		k.begun, k.at = k.begun-int64(d), k.at-int64(d)
	}
}

func (v view) LookAgainAfter(d time.Duration) { v.g.canary.pause = d }

func (v view) Looks() (now bool, last time.Time) {
	c := v.g.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looking, c.looked
}

func (v view) Kept() int {
	c := v.g.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.claims)
}
