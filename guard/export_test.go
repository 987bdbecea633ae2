package guard

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
)

// Queued returns how many callers wait to share a transaction under key, apart from the
// one that leads.
func (g *Guard) Queued(key string) int {
	g.crews.lines.mu.Lock()
	defer g.crews.lines.mu.Unlock()
	if at := g.crews.lines.of[key]; at != nil {
		return len(at.queue)
	}
	return 0
}

// NoTurnLimit lets the changes of a crew take as long as they do.
func (g *Guard) NoTurnLimit() { g.TurnLimit(time.Hour) }

// TurnLimit sets how long the changes of a crew may take.
func (g *Guard) TurnLimit(d time.Duration) { g.crews.turnTime = d }

// Lines returns for how many keys callers wait.
func (g *Guard) Lines() int {
	g.crews.lines.mu.Lock()
	defer g.crews.lines.mu.Unlock()
	return len(g.crews.lines.of)
}

// LookAgainAfter sets the time between two looks for lost commits.
func (g *Guard) LookAgainAfter(d time.Duration) { g.canary.pause = d }

// LookForUndecided makes one look of Config.Calls.
func (g *Guard) LookForUndecided() error { return g.calls.look(g.db) }

// StepClock moves the wall clock of the Guard against the monotonic one, as while the host is suspended.
func (g *Guard) StepClock(d time.Duration) { g.clock.Step(d) }

// FailOver makes the Guard take what it has committed for another server's.
func (g *Guard) FailOver() {
	c := g.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.servers = dbtx.Server{Name: "former"}, nil
	for i := range c.claims {
		c.claims[i].server = &dbtx.Server{Name: "former"}
	}
}

// Found returns how many claims the Guard has found since FailOver.
func (g *Guard) Found() (n int) {
	g.canary.mu.Lock()
	defer g.canary.mu.Unlock()
	for _, k := range g.canary.claims {
		if k.server.Name != "former" {
			n++
		}
	}
	return n
}

// Age makes the Guard take what it has committed for older by d.
func (g *Guard) Age(d time.Duration) {
	g.canary.mu.Lock()
	defer g.canary.mu.Unlock()
	for i := range g.canary.claims {
		k := &g.canary.claims[i]
		k.begun, k.at = k.begun-int64(d), k.at-int64(d)
	}
}

// Looks returns whether the Guard looks for lost commits now, and when it last began to.
func (g *Guard) Looks() (now bool, last time.Time) {
	g.canary.mu.Lock()
	defer g.canary.mu.Unlock()
	return g.canary.looking, g.canary.looked
}

// Kept returns how many claims the Guard looks for after a failover.
func (g *Guard) Kept() int {
	g.canary.mu.Lock()
	defer g.canary.mu.Unlock()
	return len(g.canary.claims)
}

// PassAfter sets for how long an operation waits at most for the pool before its locks.
func (g *Guard) PassAfter(d time.Duration) { g.gate.longest = d }

// Acquire acquires the lock on key from the Locker of the Guard.
func (g *Guard) Acquire(ctx context.Context, key string) (*lock.Lease, error) {
	return g.layer.locker.Acquire(ctx, key)
}

// KeepPlaces sets for how long an operation counts that has waited so, and waits for its locks.
func (g *Guard) KeepPlaces(d time.Duration) { g.gate.onTheWay = d }

// AtGate returns how many operations wait so.
func (g *Guard) AtGate() int { return int(g.gate.queued.Load()) }

// Begins returns how many transactions wait for a connection, or for the answer to BEGIN.
func (g *Guard) Begins() int { return int(g.gate.begins.Load()) }
