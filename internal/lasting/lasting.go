// Package lasting checks for how long locks are to last.
package lasting

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
)

// Least is the shortest ttl that engines take: Redis counts milliseconds.
const Least = time.Millisecond

// Check returns an error that matches lock.ErrDenied if an engine can't keep a lock for d: it would
// be gone when its holder learns of it.
func Check(engine string, d time.Duration) error {
	if d < Least {
		return fmt.Errorf("%w: %s: the ttl is %v, want at least %v", lock.ErrDenied, engine, d, Least)
	}
	return nil
}
