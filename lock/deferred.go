package lock

// deferred is the work that Locker.unlock does after it has unlocked Locker.mu: a
// logger may be slow, and a context may have any number of children.
type deferred struct {
	ended      []failure // losses of leases that their holders have not released
	lost       []failure // losses to be logged one by one
	notRenewed []failure // failed renewals to be logged together
}

// A failure is why a grant was lost, or not renewed.
type failure struct {
	grant *grant
	err   error
}
