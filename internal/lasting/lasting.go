// Package lasting checks for how long locks are to last.
package lasting

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// Least is the shortest ttl that engines take: Redis counts milliseconds.
const Least = time.Millisecond

// Check returns an error that matches lockengine.ErrDenied if an engine can't keep a lock for d: it would
// be gone when its holder learns of it.
func Check(engine string, d time.Duration) error {
	if d < Least {
		return fmt.Errorf("%w: %s: the ttl is %v, want at least %v", lockengine.ErrDenied, engine, d, Least)
	}
	return nil
}
