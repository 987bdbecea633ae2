package lock

import "context"

// news is what happened under Locker.mu and is told when it is free again:
// loggers are not ours, and a context may have any number of children.
type news struct {
	ended   []ending
	lost    []lossOf
	stalled stall
}

// An ending is the end of a lease whose holder has not released it.
type ending struct {
	cancel context.CancelCauseFunc
	cause  error
	key    string
}

type lossOf struct {
	grant *grant
	cause error
}

// A stall is the failure of renewals in one batch.
type stall struct {
	locks int
	first *grant
	err   error // of the first
}

func (s *stall) add(g *grant, err error) {
	if s.locks++; s.locks == 1 {
		s.first, s.err = g, err
	}
}
