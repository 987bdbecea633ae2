package lock

// deferred is what Locker.unlock does after Locker.mu is unlocked: a logger may be
// slow, and a context may have any number of children.
type deferred struct {
	ended      []failure // of leases that their holders have not released
	lost       []failure // to be logged one by one
	notRenewed []failure // to be logged together
}

// A failure is why a grant was lost, or not renewed.
type failure struct {
	grant *grant
	err   error
}
