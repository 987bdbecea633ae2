package lock

// deferred is what Locker.unlock does after Locker.mu is unlocked: a logger may be
// slow, and a context may have any number of children.
type deferred struct {
	ended          []loss // of leases that their holders have not released
	lost           []loss // to be logged
	failedRenewals failedRenewals
}

// A loss is the loss of a grant.
type loss struct {
	grant *grant
	cause error
}

// failedRenewals are the renewals of one batch that failed.
type failedRenewals struct {
	locks int
	first *grant
	err   error // of the first
}

func (s *failedRenewals) add(g *grant, err error) {
	if s.locks++; s.locks == 1 {
		s.first, s.err = g, err
	}
}
