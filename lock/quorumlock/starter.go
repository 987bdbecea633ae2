package quorumlock

import (
	"errors"
	"fmt"
	"time"
)

// A Starter is an engine that knows when its server started. A server that was started again has
// forgotten the locks that it granted, so its votes must not count for a while. An implementation
// must be safe for concurrent use.
type Starter interface {
	// Started returns when the server started, or some time later, by the clock of this
	// process. After a call of the engine has been answered, the time is that of the server
	// that answered, or of one that started later. A server that follows another one has not
	// started before that one answered, whatever its clock says. The time is zero until a
	// server has answered. Started does not block. It returns an error if the engine can't know the time.
	Started() (time.Time, error)
}

// errAbstains is the error of a node that granted a lock and does not vote.
var errAbstains = errors.New("granted, but the node does not vote yet")

// mayVote returns nil if the vote of a node counts for a lock of this ttl, which it granted at the
// time sent or later. It counts if the server started more than a ttl before: then any lock that
// the server forgot in a restart has expired.
func (e *Engine) mayVote(node int, sent time.Time, ttl time.Duration) error {
	if e.cfg.Durable {
		return nil
	}
	started, err := e.nodes[node].(Starter).Started()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errAbstains, err)
	case started.IsZero():
		return fmt.Errorf("%w: it is not known when its server started", errAbstains)
	case sent.Sub(started) <= ttl:
		return fmt.Errorf("%w: its server was started %v ago", errAbstains, sent.Sub(started).Round(time.Millisecond))
	}
	return nil
}
