package lock

// An AcquireOption adjusts one Acquire or TryAcquire.
type AcquireOption struct{ unlessMarked, local bool }

// UnlessMarked makes an acquire fail with an error that matches lockengine.ErrMarked when a
// holder has marked the key as done: see Lease.ReleaseMarked. It is for keys that name a piece
// of work. Each such acquire calls the engine: it takes part in no hand-over in memory.
// An engine that keeps no markers grants the lock.
func UnlessMarked() AcquireOption { return AcquireOption{unlessMarked: true} }

// Local makes an acquire exclude only the callers of this Locker: the engine is not
// called. It is for work that must continue while the engine cannot be reached.
//
// The lease has no owner and no token, and is not renewed: only Config.MaxHold limits
// it. An abandoned one keeps the key as long as any other would. A caller to whom an
// engine's grant is handed over, or that has one already, gets a lease on that grant.
// An Acquire inside a local lease gets another local lease. Metrics do not count local
// acquires.
func Local() AcquireOption { return AcquireOption{local: true} }

// An acquireCall is one Acquire or TryAcquire with its options.
type acquireCall struct {
	key          string
	unlessMarked bool
	local        bool
	try          bool  // without waiting
	waits        bool  // it has waited already
	came         int64 // when the caller asked for the lock
}

func newAcquireCall(key string, opts []AcquireOption) acquireCall {
	c := acquireCall{key: key}
	for _, o := range opts {
		c.unlessMarked = c.unlessMarked || o.unlessMarked
		c.local = c.local || o.local
	}
	return c
}
