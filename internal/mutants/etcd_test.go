package mutants

var etcdMutants = []mutant{
	{
		name:  "etcd-grants-twice",
		loses: "etcd grants a key that another process holds.",
		file:  "lock/etcdlock/acquire.go",
		old:   `If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).`,
		new:   `If(clientv3.Compare(clientv3.CreateRevision(name), ">", -1)).`,
		tests: "lock/etcdlock TestOneOwner",
	},
	{
		name:  "etcd-anybody-releases",
		loses: "A late release frees the lock of the next holder.",
		file:  "lock/etcdlock/release.go",
		old:   `clientv3.Compare(clientv3.Value(e.name(r.Key)), "=", r.Owner)`,
		new:   `clientv3.Compare(clientv3.CreateRevision(e.name(r.Key)), ">", 0)`,
		tests: "lock/etcdlock TestOneOwner",
	},
	{
		name:  "etcd-anybody-renews",
		loses: "A holder that lost its lock believes in that of the next one.",
		file:  "lock/etcdlock/renew.go",
		old: `	if f == nil || f.owner != r.Owner {
		e.holds.remove(h)`,
		new: `	if f == nil {
		e.holds.remove(h)`,
		tests: "lock/etcdlock TestLeaseRevoked",
	},
	{
		name:  "etcd-renewal-by-the-note-alone",
		loses: "Locks end in etcd, while their holders renew them.",
		file:  "lock/etcdlock/renew.go",
		old:   `le.keep(ctx, e.client, 0)`,
		new:   `le.keep(ctx, e.client, time.Hour)`,
		tests: "lock/etcdlock TestRequests",
	},
	{
		name:  "etcd-lock-lives-with-the-others",
		loses: "The lock of a caller that does not renew it stays as long as the process renews any other.",
		file:  "lock/etcdlock/hold.go",
		old:   `time.AfterFunc(ttl, func()`,
		new:   `time.AfterFunc(100*ttl, func()`,
		tests: "lock/etcdlock TestUnrenewedEnds",
	},
	{
		name:  "etcd-stray-lock-stays",
		loses: "A lock that was taken without an answer stays as long as the process renews any other.",
		file:  "lock/etcdlock/acquire.go",
		old: `		if errors.Is(err, lock.ErrNoAnswer) {
			le.strays(id)`,
		new: `		if errors.Is(err, lock.ErrNotSent) {
			le.strays(id)`,
		tests: "lock/etcdlock TestAcquireWithoutAnswerEnds",
	},
	{
		name:  "etcd-stray-move-stays",
		loses: "A lock that was moved to another lease without an answer stays as long as the process renews any other.",
		file:  "lock/etcdlock/renew.go",
		old:   `	if errors.Is(err, lock.ErrNoAnswer) {`,
		new:   `	if errors.Is(err, lock.ErrNotSent) {`,
		tests: "lock/etcdlock TestUnansweredMove",
	},
	{
		name:  "etcd-grants-what-it-deletes",
		loses: "A lock is deleted right after its owner has acquired it again.",
		file:  "lock/etcdlock/acquire.go",
		old:   `	if !e.holds.begin(h) {`,
		new:   `	if !e.holds.begin(h) && r.Waits {`,
		tests: "lock/etcdlock TestAcquireDuringDeletion",
	},
	{
		name:   "etcd-watch-forgets-what-it-missed",
		loses:  "A waiter whose watch was interrupted notices a release up to a second later.",
		file:   "lock/etcdlock/watch.go",
		old:    `			if again {`,
		new:    `			if again && ctx.Err() != nil {`,
		tests:  "lock/etcdlock TestWatchAfterCompaction",
		panics: true,
	},
	{
		name:  "etcd-unknown-error-sent-nothing",
		loses: "A lock that was granted without an answer is left to expire.",
		file:  "lock/etcdlock/call.go",
		old: `	return lock.ErrNoAnswer
}`,
		new: `	return lock.ErrNotSent
}`,
		tests: "lock/etcdlock TestFullServerMayHaveTaken",
	},
	{
		name:  "etcd-lost-lease-is-kept",
		loses: "After etcd has lost the lease, no lock is granted until a renewal.",
		file:  "lock/etcdlock/acquire.go",
		old:   `		if isLeaseLost(err) && tries == 0 { // nothing was executed`,
		new:   `		if isLeaseLost(err) && tries < 0 { // nothing was executed`,
		tests: "lock/etcdlock TestLeaseRevoked",
	},
	{
		name:  "etcd-one-silent-member-stops-renewals",
		loses: "An acquire that waits for a silent member keeps all renewals waiting, and the locks are lost.",
		file:  "lock/etcdlock/lease.go",
		old:   `min(time.Second, l.ttl/2)`,
		new:   `time.Hour`,
		tests: "lock/etcdlock TestSilentMemberDelaysNoRenewal",
	},
	{
		name:  "etcd-lease-for-each-cancelled-acquire",
		loses: "Each acquire that is cancelled under way leaves a lease in etcd, and moves all locks.",
		file:  "lock/etcdlock/lease.go",
		old:   `	if l.stray && time.Since(l.left) >= leaveEvery {`,
		new:   `	if l.stray {`,
		tests: "lock/etcdlock TestCancelledAcquiresShareLeases",
	},
	{
		name:  "etcd-watch-ends-with-a-panic",
		loses: "A waiter whose watch has panicked is never notified again.",
		file:  "lock/etcdlock/watch.go",
		old:   `		if wait.Sleep(ctx, time.Second, nil) != nil {`,
		new:   `		if wait.Sleep(ctx, time.Second, nil) != nil || errors.Is(err, background.ErrPanic) {`,
		tests: "lock/etcdlock TestPanicOfAWatch", panics: true,
	},
}
