package guard

import "time"

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
