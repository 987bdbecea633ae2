package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/lock"
)

// maxKeys bounds the keys of one operation: each costs two requests to the engine, and
// whoever waits for one holds those before it.
const maxKeys = 16

// hold is the lock on one key of a call, or what stands for it.
type hold struct {
	call    *call
	key     string
	rows    []any // that the key protects
	lease   *lock.Lease
	ctx     context.Context // of the lease
	without error           // why there is no lock but only a place in the local queue
	outage  *outage         // which it is without for
	settled bool            // the lease has been given back
	gone    error           // what its release found, if the lock was lost
}

// plan lists the holds of a call in the order in which all processes acquire them:
// otherwise two callers could wait for each other.
func (c *call) plan() error {
	if err := c.planClaim(); err != nil {
		return err
	}
	c.holds = append(c.one[:0], hold{call: c, key: c.key, rows: c.protects})
	for _, a := range c.also {
		if h := c.hold(a.key); h != nil {
			h.rows = append(slices.Clip(h.rows), a.rows...)
			continue
		}
		c.holds = append(c.holds, hold{call: c, key: a.key, rows: a.rows})
	}
	switch {
	case len(c.holds) > maxKeys:
		return fmt.Errorf("guard: %d keys in one operation, at most %d are allowed", len(c.holds), maxKeys)
	case c.isRequests(c.key) && len(c.protects) > 0:
		return errors.New("guard: Protects under the key of a request, which protects no rows: name them by Also")
	case c.maxBody < 0 || c.maxBody > largestBody:
		return fmt.Errorf("guard: MaxAnswer of %d bytes is outside 0 to %d", c.maxBody, largestBody)
	case len(c.holds) > 1 && c.remember > 0 && !c.isRequests(c.key):
		return errors.New("guard: Remember with several keys: it is for one key that names a request")
	}
	slices.SortFunc(c.holds, func(a, b hold) int { return cmp.Compare(c.rank(a.key), c.rank(b.key)) })
	c.planHeld()
	return nil
}

// remembers returns for how long the first layer is to remember that what the key names is
// done.
func (h *hold) remembers() time.Duration {
	if c := h.call; c.isRequests(h.key) || !c.isRequests(c.key) {
		return c.remember
	}
	return 0
}

// rank orders the keys: that of a request comes first, since a repeat must not wait for the
// others.
func (c *call) rank(key string) string {
	if c.isRequests(key) {
		return ""
	}
	return key
}

// hold returns the hold on key, or nil.
func (c *call) hold(key string) *hold {
	for i := range c.holds {
		if c.holds[i].key == key {
			return &c.holds[i]
		}
	}
	return nil
}

// keys returns the keys of the call if there are several.
func (c *call) keys() []string {
	if len(c.holds) == 1 {
		return nil
	}
	keys := make([]string, len(c.holds))
	for i := range c.holds {
		keys[i] = c.holds[i].key
	}
	return keys
}

// lapse returns why a lease is no longer believed in, and its hold.
func (c *call) lapse() (*hold, error) {
	return c.first(func(h *hold) error {
		if h.lease == nil {
			return nil
		}
		return h.lease.Err()
	})
}

// first returns the first error that of returns, and its hold. A lease that Close gave
// up counts only if there is no other.
func (c *call) first(of func(*hold) error) (which *hold, err error) {
	for i := range c.holds {
		e := of(&c.holds[i])
		switch {
		case e == nil:
		case !errors.Is(e, lock.ErrClosed):
			return &c.holds[i], e
		case err == nil:
			which, err = &c.holds[i], e
		}
	}
	return which, err
}

// alive returns an error if a lease is no longer believed in.
func (c *call) alive() error {
	_, err := c.lapse()
	return err
}

// without returns why the call runs without the lock on a key, or nil if it has all.
func (c *call) without() error {
	for i := range c.holds {
		if err := c.holds[i].without; err != nil {
			return err
		}
	}
	return nil
}

// ttl returns for how long all locks last without a renewal.
func (c *call) ttl() time.Duration {
	return c.holds[0].lease.Grant().TTL // one Locker has one ttl
}

// within returns ctx, but it ends with the first lease that ends.
func (c *call) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := make([]func() bool, 0, 1)
	for i := range c.holds {
		if lease := c.holds[i].ctx; lease != nil {
			stops = append(stops, context.AfterFunc(lease, func() { cancel(context.Cause(lease)) }))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop() // or the release would make a goroutine that ends ctx
		}
		cancel(context.Canceled)
	}
}
