package quorumlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock/internal/ability"
)

// errAbstains is the error of a node that granted a lock and does not vote.
var errAbstains = errors.New("granted, but the node does not vote yet")

// mayVote returns nil if the vote of a node counts for a lock of this ttl, which it granted at the
// time sent or later. It counts if the server started more than a ttl before: then any lock that
// the server forgot in a restart has expired.
func (e *engine) mayVote(node int, sent time.Time, ttl time.Duration) error {
	if e.cfg.Durable {
		return nil
	}
	started, err := e.nodes[node].(ability.Starter).Started()
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
