package guard

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
)

// call is one Do: the locks, and one attempt or several under them.
type call struct {
	options
	guard    *Guard
	key      string // that Do was given
	op       Op
	change   Change          // what op does, if it was given to Apply
	once     *answering      // its answer, if it was given to Once
	applies  bool            // it was
	policy   Policy          // of the guard, when it began
	ctx      context.Context // the caller's, and what the Observer adds
	holds    []hold          // of all keys, in the order in which they are acquired
	one      [1]hold         // most calls have one
	memory   dbtx.Memory     // of all attempts
	tx       *dbtx.Tx        // of the attempt that runs
	last     ending          // of the last attempt; it has no outcome if somebody's code panicked
	tries    int             // attempts that were made again
	claiming *claiming       // of the request that the call serves, if it does
	crew     *crew           // that the call leads, if it does
	brought  bool            // the caller gave Update a row with a version, which no attempt changes

	outages []*outage       // that it is counted in, as one of those who may run without a lock
	waiting context.Context // of the wait that was begun last
	endWait func(error)     // nil unless the call waits
	waited  bool            // it has, once
	begun   time.Time       // when the call did
	until   time.Time       // when the wait for the locks ends, if there is one
	shared  int             // how many calls' changes the transaction makes, if there are several
	became  string          // with Combine: see combinedShared; empty until there is a transaction
}

// callKey asks a context for the call whose operation it belongs to.
type callKey struct{}

// callContext is the context of a call's operation. It carries the leases, too, in
// which another acquire of the key is nested.
type callContext struct {
	context.Context
	call *call
}

func (c callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	for i := range c.call.holds {
		if v := c.call.holds[i].ctx.Value(key); v != nil {
			return v
		}
	}
	return nil
}
