package mutants

var callMutants = []mutant{
	{
		name:  "call-without-lease",
		loses: "A failover of the lock lets two processes call for one request.",
		file:  "internal/pending/pending.go",
		old:   `lease_ms = " + now + " + ?, until_ms`,
		new:   `lease_ms = " + now + " + 0 * ?, until_ms`,
		tests: "guard/promises TestLeaseExcludes",
	},
	{
		name:  "call-settled-behind-the-look",
		loses: "A request that another process has just settled is reserved and called again.",
		file:  "guard/callout_reserve.go",
		old:   `	return o.vacant(t.Context(), "belay_once", r.row)`,
		new:   `	return nil`,
		tests: "guard/promises TestClaimIsSeenBehindTheRow",
	},
	{
		name:  "call-settled-by-any-attempt",
		loses: "A process that was paused settles what another one is calling for.",
		file:  "internal/pending/pending.go",
		old:   `DELETE FROM belay_pending WHERE request = ? AND attempt = ?`,
		new:   `DELETE FROM belay_pending WHERE request = ? AND (attempt = ? OR 1 = 1)`,
		tests: "guard/promises TestOvertakenCallSettlesNothing",
	},
	{
		name:  "call-behind-until",
		loses: "A provider that has forgotten the id charges twice.",
		file:  "guard/callout_look.go",
		old:   `	case s.Until <= 0:`,
		new:   `	case s.Until <= 0 && s.Lease > 0:`,
		tests: "guard/promises TestUndecided",
	},
	{
		name:  "call-result-not-stored",
		loses: "A provider is called again for as long as Settle fails, and charges twice when it has forgotten the id.",
		file:  "guard/callout_run.go",
		old:   `		err = pending.Store(ctx, o.db, o.sum, o.attempt, *o.result)`,
		new:   `		err = ctx.Err()`,
		tests: "guard/promises TestResultIsStored",
	},
	{
		name:  "call-result-of-an-outage",
		loses: "The answer of a provider is lost if the database is away for a moment when it comes.",
		file:  "guard/callout_run.go",
		old:   `n >= stores && wait.Sleep(ctx, storePause, nil) != nil {`,
		new:   `n >= stores && wait.Err(ctx) == nil {`,
		tests: "guard/promises TestResultAwaitsTheDatabase",
	},
	{
		name:  "call-result-on-a-lagging-node",
		loses: "The answer of a provider is lost without a word, since a node has not applied the reservation yet.",
		file:  "guard/callout_run.go",
		old:   `			err = o.taken(ctx, err)`,
		new:   `			err = nil`,
		tests: "guard/promises TestResultOnALaggingNode",
	},
	{
		name:  "call-overtaken-on-a-lagging-node",
		loses: "A caller is told that another attempt has its request, since a node has not applied the reservation yet.",
		file:  "guard/callout_run.go",
		old:   `	if errors.Is(err, pending.ErrTaken) && errors.Is(o.taken(ctx, err), pending.ErrTaken) {`,
		new:   `	if errors.Is(err, pending.ErrTaken) && o.stored {`,
		tests: "guard/promises TestResultOnALaggingNode",
	},
	{
		name:  "call-taken-over-by-all",
		loses: "All who come at once for a request whose process has died call.",
		file:  "guard/callout_look.go",
		old:   `	case errors.Is(err, pending.ErrTaken):`,
		new:   `	case errors.Is(err, pending.ErrTaken) && s.Tries < 0:`,
		tests: "guard/promises TestOneTakesOver",
	},
	{
		name:  "call-before-the-commit-is-known",
		loses: "A call is made whose reservation does not exist.",
		file:  "guard/callout_reserve.go",
		old: `	case err != nil:
		return nil, err
	}
	o.attempt`,
		new: `	case errors.Is(err, ErrDuplicate):
		return nil, err
	}
	o.attempt`,
		tests: "guard/promises TestCommitOfReservationWithoutAnswer",
	},
	{
		name:  "call-with-another-content",
		loses: "A repeat with another amount is sent with the id of the first.",
		file:  "guard/callout_look.go",
		old:   `	case o.request.Print.Differs(s.Print):`,
		new:   `	case len(s.Print) == 0:`,
		tests: "guard/promises TestCallIsRepeated",
	},
	{
		name:  "call-with-a-print-of-another-version",
		loses: "Whoever is charged when a deploy raises the version of the prints gets no answer any more, and pays again.",
		file:  "guard/callout_look.go",
		old:   `	case o.request.Print.Differs(s.Print):`,
		new:   `	case string(s.Print) != string(o.request.Print.Bytes()):`,
		tests: "guard/promises TestPrintOfAnotherVersion",
	},
	{
		name:  "call-refused-by-a-timeout",
		loses: "A reservation is given back, and the charge lands.",
		file:  "guard/callout.go",
		old:   `v, err = refusedAs[Out](refusal); ctx.Err() != nil {`,
		new:   `v, err = refusedAs[Out](refusal); false {`,
		tests: "guard/promises TestTimeoutIsNoRefusal",
	},
	{
		name:  "call-loss-told-by-its-transaction",
		loses: "The event of a lock that a call has lost says what became of one of its transactions.",
		file:  "guard/finish.go",
		old:   `	if r.outer.has(r.keys.find(l.key)) {`,
		new:   `	if r.outer.has(r.keys.find(l.key)) && r.count < 0 {`,
		tests: "guard/promises TestLossOfAPendingCallIsOneEvent",
	},
	{
		name:  "call-loss-rolled-back",
		loses: "The event of a lost lock says rolled_back of a request that was settled.",
		file:  "guard/callout_run.go",
		old:   `	if settled = err == nil; settled {`,
		new:   `	if settled = err == nil; settled && o.result == nil {`,
		tests: "guard/promises TestLossInCallIsOneEvent",
	},
	{
		name:  "call-keeps-its-place",
		loses: "With as many calls as places under DBOnlyLimit none can settle.",
		file:  "guard/holding.go",
		old:   `	h.run.keys.uncounted = true`,
		new:   `	h.run.keys.uncounted = false`,
		tests: "guard/promises TestCallLeavesThePlaces",
	},
	{
		name:  "undecided-call-that-nobody-repeats",
		loses: "A payment of unknown outcome is reported to nobody unless its client comes again.",
		file:  "guard/undecided.go",
		old:   `	if r.cfg.Calls && running.enter() {`,
		new:   `	if r.cfg.Calls && r.cfg.EndTimeout < 0 && running.enter() {`,
		tests: "guard/promises TestUndecidedIsFound",
	},
	{
		name:  "call-kept-pending",
		loses: "A settled request stays pending.",
		file:  "guard/callout_run.go",
		old:   `			return pending.Settle(ctx, q, d, o.sum, o.attempt)`,
		new:   `			return nil`,
		tests: "internal/sim TestCalls",
	},
	{
		name:  "call-begun-late",
		loses: "A process that was paused calls for a request that another one has taken over, or behind Until.",
		file:  "guard/callout_run.go",
		old:   `return clock.Since(o.begun) > o.slack() || clock.Since(o.read) >= o.left`,
		new:   `return clock.Since(o.begun) < 0`,
		tests: "internal/sim TestCalls",
	},
	{
		name:  "reservation-of-another-attempt",
		loses: "An error says that a request was rolled back, which another process has taken over.",
		file:  "guard/callout_reserve.go",
		old:   `	if o.guard.clock.Since(o.begun) < o.lease() {`,
		new:   `	if o.lease() > 0 {`,
		tests: "guard/promises TestReservationIsPassedOn",
	},
	{
		name:  "call-of-a-suspended-host",
		loses: "A host that was suspended behind Until calls a provider that has forgotten the id.",
		file:  "internal/elapsed/elapsed.go",
		old:   `	return max(now.Sub(t), wall)`,
		new:   `	return max(now.Sub(t), min(wall, 0))`,
		tests: "guard/promises TestSuspendedHost",
	},
	{
		name:  "call-done-before",
		loses: "A consumer acknowledges a message whose charge is open, since the ledger had a request before.",
		file:  "guard/callout_run.go",
		old:   `	return &PendingError{Err: o.claiming().own(err)}`,
		new:   `	return &PendingError{Err: err}`,
		tests: "guard/promises TestOwnErrorOfDo",
	},
	{
		name:  "call-goes-on-behind-a-suspension",
		loses: "A host that was suspended in a call sends it again, to a provider that has forgotten the id.",
		file:  "guard/callout_run.go",
		old:   `	ctx, cancel := o.guard.clock.WithTimeout(ctx, o.timeout)`,
		new:   `	ctx, cancel := context.WithTimeout(ctx, o.timeout)`,
		tests: "guard/promises TestSuspendedInCall",
	},
	{
		name:  "call-timed-from-the-look",
		loses: "A process that is paused behind the look at its clock has the whole time for the call, behind the lease.",
		file:  "guard/callout_run.go",
		old: `	ctx, cancel := o.guard.clock.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.late() {
		return errLate
	}
`,
		new: `	if o.late() {
		return errLate
	}
	ctx, cancel := o.guard.clock.WithTimeout(ctx, o.timeout)
	defer cancel()
`,
		tests: "guard/promises TestSuspendedWithTheDeadline",
	},
	{
		name:  "reservation-lacking-at-a-former-writer",
		loses: "An error says that a request was rolled back, on the word of a server that may be behind.",
		file:  "guard/callout_reserve.go",
		old:   `	return err != nil || known`,
		new:   "	_ = err\n	return known",
		tests: "guard/promises TestReservationIsPassedOn",
	},
	{
		name:  "call-is-never-undecided",
		loses: "Callers are told to repeat a request for ever whose outcome only a person can find out.",
		file:  "guard/callout_look.go",
		old:   `		return nil, &PendingError{Undecided: true}`,
		new:   `		return nil, o.claiming().busy(errLate)`,
		tests: "internal/sim TestCalls",
	},
	{
		name:  "call-result-behind-its-lease",
		loses: "A result that could not be settled is settled by no repeat until the lease of its call has ended.",
		file:  "guard/callout_look.go",
		old:   `	case s.Result != nil:`,
		new:   `	case s.Result != nil && s.Lease <= 0:`,
		tests: "internal/sim TestCallTraces",
	},
	{
		name:  "reserved-since-the-snapshot",
		loses: "A caller of a pending request is told that it brought an old version.",
		file:  "guard/callout_reserve.go",
		old:   " || errors.Is(err, ErrStale)): //",
		new:   "): //",
		tests: "internal/sim TestReservedMeanwhile",
	},
}
