package mutants

var lockMutants = []mutant{
	{
		name:  "next-head-is-not-woken",
		loses: "Callers wait to the end of their patience for a lock that nobody has.",
		file:  "lock/queue.go",
		old: `	if q.empty() {
		return false`,
		new: `	if q.empty() || t.grant == nil {
		return false`,
		tests: "internal/sim TestRest",
	},
	{
		name:  "late-hand-over-hides-a-loss",
		loses: "Callers before have worked without a lock, and nobody reports it.",
		file:  "lock/acquire.go",
		old:   `	if errors.Is(err, ErrLost) {`,
		new:   `	if errors.Is(err, ErrLost) && lease == nil {`,
		tests: "lock TestHandOverOfALostLock",
	},
	{
		name:  "err-trusts-the-watchdog",
		loses: "A statement is sent under a lock that has expired, as the watchdog has not noticed yet.",
		file:  "lock/loss.go",
		old: `	if l.ctx.Err() == nil {
		if k.now() < l.grant.deadline.Load() || !k.expireLease(l) {
			return nil
		}
	}`,
		new: `	if l.ctx.Err() == nil && !k.halted {
		return nil
	}`,
		tests: "lock TestErrAtDeadline",
	},
	{
		name:  "deadline-without-a-margin",
		loses: "A holder that can't renew believes in its lock until the moment when another gets it.",
		file:  "lock/grant.go",
		old:   `sent + int64(cfg.TTL-cfg.margin())`,
		new:   `sent + int64(cfg.TTL)`,
		tests: "lock TestEngineUnreachable TestErrAtDeadline",
	},
	{
		name:  "deadline-from-the-answer",
		loses: "After a slow renewal the holder believes in its lock for longer than Redis keeps it.",
		file:  "lock/watchdog.go",
		old:   `g.renewed(sent, &l.cfg)`,
		new:   `g.renewed(l.now(), &l.cfg)`,
		tests: "lock TestSlowRenewal",
	},
	{
		name:   "renewal-ignores-not-held",
		loses:  "A holder whose lock another has by now goes on until its deadline.",
		file:   "lock/watchdog.go",
		old:    `case notOurs(err):`,
		new:    `case notOurs(err) && g.lastRenewalFailed:`,
		tests:  "lock TestEngineSaysNotOurs",
		panics: true,
	},
	{
		name:  "renewal-gives-up-at-an-error",
		loses: "One lost packet costs a holder its lock.",
		file:  "lock/watchdog.go",
		old:   `case notOurs(err):`,
		new:   `case err != nil:`,
		tests: "lock TestRenewalGoesOnThroughErrors",
	},
	{
		name:  "renewals-go-to-the-old-node",
		loses: "After a failover the locks of a shard are renewed together with those of a dead node.",
		file:  "lock/watchdog.go",
		old:   `	if locator == nil {`,
		new:   `	if locator == nil || node != "" {`,
		tests: "lock TestBatchesAfterFailover",
	},
	{
		name:  "overwritten-lock-is-kept",
		loses: "A holder whose entry in Redis somebody overwrote goes on until its deadline.",
		file:  "lock/errors.go",
		old:   `return errors.Is(err, lockengine.ErrNotHeld) || errors.Is(err, lockengine.ErrUnusable)`,
		new:   `return errors.Is(err, lockengine.ErrNotHeld)`,
		tests: "lock TestOverwrittenLockIsLostAtRenewal TestOverwrittenLockIsLostAtRelease",
	},
	{
		name:  "orphan-dropped-when-the-caller-leaves",
		loses: "A key stays locked by nobody for a ttl after a caller gave up its request.",
		file:  "lock/attempt.go",
		old:   `		if mayBeHeld(err) {`,
		new:   `		if mayBeHeld(err) && wait.Err(ctx) == nil {`,
		tests: "lock TestAnswerOfAcquireLost TestAnswerLostToACallerThatLeaves",
	},
	{
		name:  "not-held-settles-an-acquire",
		loses: "A key stays locked by nobody for a ttl if its acquire is executed after its release.",
		file:  "lock/release_orphans.go",
		old:   `settled := err == nil || notOurs(err) && (!r.acquire || l.halted)`,
		new:   `settled := err == nil || notOurs(err)`,
		tests: "lock TestDelayedAcquire",
	},
	{
		name:  "late-acquire-left-behind",
		loses: "After Redis stood still, a key stays locked by nobody for another ttl.",
		file:  "lock/reclaim.go",
		old:   `	if o == nil && l.now() >= l.protected[r.Owner] {`,
		new:   `	if o == nil && l.halted {`,
		tests: "lock TestAcquireExecutedLate",
	},
	{
		name:  "lock-of-a-late-holder-reclaimed",
		loses: "A lock is taken from a holder of the same process that is still at work.",
		file:  "lock/reclaim.go",
		old:   `	if o == nil && l.now() >= l.protected[r.Owner] {`,
		new:   `	if o == nil {`,
		tests: "lock TestRenewalExecutedLate TestWaiterAfterAbandon TestGhostThatStays",
	},
	{
		name:  "orphan-in-the-way-is-waited-for",
		loses: "A caller waits for a lock that its own process has left behind.",
		file:  "lock/attempt.go",
		old:   `		if ok && held.Holder.Owner != released &&`,
		new:   `		if ok && c.try && held.Holder.Owner != released &&`,
		tests: "lock TestGhostIsNotWaitedFor",
	},
	{
		name:  "refused-lock-becomes-an-orphan",
		loses: "A Redis without memory is kept busy with releases of locks that it never granted.",
		file:  "lock/errors.go",
		old:   `errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrRefused) || errors.Is(err, lockengine.ErrUnusable)`,
		new:   `errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrUnusable)`,
		tests: "lock TestAnsweredRefusalLeavesNothing",
	},
	{
		name:  "hand-over-skips-the-lost-flag",
		loses: "A lock that was lost while it was handed over is used, and nobody reports the loss.",
		file:  "lock/grants.go",
		old: `	lost := g.state == stateLost
	lease := l.newLease(ctx, g, l.now())`,
		new: `	lease := l.newLease(ctx, g, l.now())
	lost := g.state == stateLost`,
		tests:  "lock TestLostWhilePassed",
		panics: true,
	},
	{
		name:  "hand-over-after-a-failed-renewal",
		loses: "A lock that may be another's by now is handed to the next caller.",
		file:  "lock/grant.go",
		old:   `!g.noHandOver && !g.renewalFailed && `,
		new:   `!g.noHandOver && `,
		tests: "lock TestNoHandOverAfterFailedRenewal",
	},
	{
		name:  "handed-over-for-ever",
		loses: "A busy process keeps a key from all the others.",
		file:  "lock/grant.go",
		old:   `(g.generation == 0 || now-g.granted < window)`,
		new:   `(g.generation == 0 || now-g.granted < window || g.due != never)`,
		tests: "lock TestHandOverWindow TestHandOverAfterWindow",
	},
	{
		name:  "abandon-frees-the-key",
		loses: "A caller gets the key while a COMMIT of unknown outcome may still take effect.",
		file:  "lock/release.go",
		old:   `	g.due, g.limit = never, never`,
		new:   `	g.due, g.limit = never, locker.now()`,
		tests: "lock TestAbandon TestWaiterAfterAbandon",
	},
	{
		name:  "abandoned-lock-is-renewed",
		loses: "The key of a COMMIT of unknown outcome stays locked until the process ends.",
		file:  "lock/release.go",
		old: `	g.state = stateAbandoned
	g.due, g.limit = never, never`,
		new: `	g.state = stateAbandoned
	g.limit = never`,
		tests: "lock TestAbandon",
	},
	{
		name:  "next-caller-before-the-context-ends",
		loses: "A caller gets a key while the one that lost it has not been stopped yet.",
		file:  "lock/locker.go",
		old: `	for _, e := range n.ended {
		e.grant.cancel(e.err)
	}
	for _, e := range n.ended {
		l.queues.leave(e.grant.key)
		l.finish()
	}`,
		new: `	for _, e := range n.ended {
		l.queues.leave(e.grant.key)
		l.finish()
	}
	for _, e := range n.ended {
		e.grant.cancel(e.err)
	}`,
		tests: "lock TestContextEndsBeforeTheKeyIsFree",
	},
	{
		name:  "queue-is-last-in-first-out",
		loses: "Under load the first caller of a key is the last to get it.",
		file:  "lock/queue.go",
		old:   `q.waiters.PushBack(`,
		new:   `q.waiters.PushFront(`,
		tests: "lock TestQueueIsFirstInFirstOut",
	},
	{
		name:  "release-is-not-awaited",
		loses: "Nobody learns that a lock was gone when it was given back.",
		file:  "lock/release.go",
		old:   `		return l.locker.free(ctx, g, mark)`,
		new: `		go func() { _ = l.locker.free(ctx, g, mark) }()
		return nil`,
		tests: "internal/sim TestTraces",
	},
	{
		name:  "nested-release-frees-the-lock",
		loses: "A lock is released while its outer holder is at work.",
		file:  "lock/release.go",
		old:   `	case g.leases > 0 && g.state == stateHeld:`,
		new:   `	case g.leases > 1 && g.state == stateHeld:`,
		tests: "lock TestNestedReleases TestNestedLease",
	},
	{
		name:  "released-lease-is-shared",
		loses: "A caller gets the lock of another one's nested lease with the context of a lease that was released.",
		file:  "lock/lease.go",
		old:   `	if outer.done || g.state != stateHeld ||`,
		new:   `	if g.state != stateHeld ||`,
		tests: "lock TestReleasedLeaseSharesNothing",
	},
	{
		name:  "queue-lets-two-in",
		loses: "Two callers of one process hold a key at a time.",
		file:  "lock/queue.go",
		old: `	if !busy {
		qs.byKey[key] = new(queue)`,
		new: `	if !busy || q.grant == nil {
		qs.byKey[key] = new(queue)`,
		tests:  "lock TestExclusion TestQueueIsFirstInFirstOut",
		panics: true,
	},
	{
		name:  "no-limit-of-a-hold",
		loses: "A statement to a silent database keeps its key locked until the process ends.",
		file:  "lock/config.go",
		old:   `		c.MaxHold = defaultMaxHold`,
		new:   `		c.MaxHold = -1`,
		tests: "lock TestMaxHoldHasADefault",
	},
	{
		name:  "silent-watch-keeps-a-waiter",
		loses: "A waiter misses a release for a ttl, as the engine does not answer its subscription.",
		file:  "lock/wait.go",
		old:   `within(ctx, min(floorTo, l.cfg.TTL))`,
		new:   `within(ctx, l.cfg.TTL)`,
		tests: "lock TestWatchIsSilent",
	},
	{
		name:  "line-gives-up-one-by-one",
		loses: "The k-th caller in line waits k ttls for an engine that does not answer.",
		file:  "lock/wait.go",
		old:   `return max(earlier.reached, c.came)`,
		new:   `return l.now()`,
		tests: "lock TestQueueGivesUpAfterATTL",
	},
	{
		name:  "line-forgets-an-answer",
		loses: "A caller gives up because it has waited long, though the engine answered those before it.",
		file:  "lock/wait.go",
		old:   `return max(earlier.reached, c.came)`,
		new:   `return c.came`,
		tests: "lock TestQueueIsAnsweredInBetween",
	},
	{
		name:  "marked-answer-leaves-a-failure",
		loses: "A caller gives up because an engine was silent that has just told the one before it of a marker.",
		file:  "lock/wait.go",
		old:   "			l.queues.note(c.key, nil)\n",
		new:   "",
		tests: "lock TestMarkedKeyAfterASilence",
	},
	{
		name:  "silent-watch-outlasts-a-ttl",
		loses: "A waiter with a short ttl misses a release for a second, as the engine does not answer its subscription.",
		file:  "lock/wait.go",
		old:   `within(ctx, min(floorTo, l.cfg.TTL))`,
		new:   `within(ctx, floorTo)`,
		tests: "lock TestWatchIsSilentForAShortTTL",
	},
	{
		name:  "error-names-the-bound",
		loses: "An error says that an engine was silent for 29 s, though its client gave up after one.",
		file:  "lock/attempt.go",
		old:   `overdue(err, time.Duration(l.now()-sent))`,
		new:   `overdue(err, l.cfg.answerTime())`,
		tests: "lock TestClientGivesUpBeforeTheTTL",
	},
	{
		name:  "times-of-the-first-clock",
		loses: "After a clock was set, an event blames a failover that was before its lock.",
		file:  "lock/locker.go",
		old:   `return now.Add(l.step - now.Sub(l.epoch))`,
		new:   `return l.epoch.Add(now.Sub(now))`,
		tests: "lock TestLeaseTimesFollowTheWallClock",
	},
	{
		name:  "failed-release-is-forgotten",
		loses: "A key stays locked for a ttl after each release whose answer is lost.",
		file:  "lock/release.go",
		old:   `		if !settled { // not answered, or the engine panicked`,
		new:   `		if !settled && mark > 0 {`,
		tests: "lock TestReleaseFails TestUnsentReleaseIsTriedAgainSoon",
	},
	{
		name:  "renewal-hides-a-later-loss",
		loses: "A lock that is deleted during its renewal is missed until the next one.",
		file:  "lock/suspects.go",
		old:   `	if g.suspected <= sent {`,
		new:   `	if g.suspected <= l.now() {`,
		tests: "lock TestReportDuringARenewal",
	},
}
