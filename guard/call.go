package guard

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
)

// call is one Do: the lock, and one attempt or several under it.
type call struct {
	options
	guard   *Guard
	key     string
	op      Op
	ctx     context.Context // the caller's, and what the Observer adds
	lease   *lock.Lease
	memory  dbtx.Memory // of all attempts
	without error       // why there is no lock but only a place in the local queue
	outage  *outage     // which it is without for
	tx      *dbtx.Tx    // of the attempt that runs
	tries   int         // attempts that were made again
	brought bool        // the caller gave Update a row with a version, which no attempt changes
	settled bool        // the lease has been given back
}

// callKey asks a context for the call whose operation it belongs to.
type callKey struct{}

// callContext is the context of a call's operation. It carries the lease, too, in
// which another acquire of the key is nested.
type callContext struct {
	context.Context
	call  *call
	lease context.Context
}

func (c callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.lease.Value(key)
}
