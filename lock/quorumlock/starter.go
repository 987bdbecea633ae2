package quorumlock

import (
	"errors"
	"fmt"
	"time"
)

// A Starter is an engine that knows since when its server runs: a server that was started
// again has forgotten for whom it voted.
type Starter interface {
	// Started returns when the server has started, or some time later, by the clock of this
	// process. When a call of the engine has been answered, that is the server that
	// answered, or one that has started since. The zero time means that none has answered
	// yet. Started does not block. It returns an error if the engine can't know.
	Started() (time.Time, error)
}

// errAbstains is the error of a node that granted a lock, and does not vote.
var errAbstains = errors.New("it does not vote yet")

// mayVote returns nil if the vote of a node counts for a lock of this ttl that it granted
// at the time sent, or later. If its server had forgotten the lock of another owner, that
// has expired.
func (e *Engine) mayVote(node int, sent time.Time, ttl time.Duration) error {
	if e.cfg.Durable {
		return nil
	}
	started, err := e.nodes[node].(Starter).Started()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errAbstains, err)
	case started.IsZero():
		return fmt.Errorf("%w: it is not known since when its server runs", errAbstains)
	case sent.Sub(started) <= ttl:
		return fmt.Errorf("%w: its server was started %v ago", errAbstains, sent.Sub(started).Round(time.Millisecond))
	}
	return nil
}
