package mutants

var onceMutants = []mutant{
	{
		name:  "claim-comes-last",
		loses: "An operation runs twice at once when its lock has failed.",
		file:  "guard/attempt.go",
		old: `	if err := s.claims.claim(s.tx, s.held); err != nil {
		return true, err
	}
	return true, s.tx.Flush()
}

// work runs the operation.
func (s *series) work(op Op) error {
	s.budget.begin()
	return op(s.tx.Context(), s.tx.DB())`,
		new: `	return true, s.tx.Flush()
}

func (s *series) work(op Op) error {
	if err := op(s.tx.Context(), s.tx.DB()); err != nil {
		return err
	}
	return s.claims.claim(s.tx, s.held)`,
		tests: "guard/promises TestForAfterALostLock TestForWhileItRuns",
	},
	{
		name:  "claim-under-other-keys-is-an-alarm",
		loses: "A client that uses an id again pages people.",
		file:  "guard/verdict.go",
		old:   `	case e.foreign: // our lock excludes nobody who holds others`,
		new:   `	case false:`,
		tests: "guard/promises TestForWhileItRuns",
	},
	{
		name:  "claim-covers-every-key",
		loses: "Without the lock two requests write a row that nothing guards.",
		file:  "guard/claim.go",
		old:   `	err := t.Claim(k.key, k.made,`,
		new:   `	err := t.Claim(h.state("").key, k.made,`,
		tests: "guard/promises TestForWithoutTheLock",
	},
	{
		name:  "crew-stores-the-requests-of-failed-changes",
		loses: "A request that was sold out is refused as done before.",
		file:  "guard/crew_claims.go",
		old:   `	return tx.RollbackTo(beforeClaims).Error`,
		new:   `	return nil`,
		tests: "guard/promises TestCombineRequests",
	},
	{
		name:  "repeat-in-a-crew-gets-a-turn",
		loses: "When many repeat their requests for a hot item, each repeat takes as long as a crew.",
		file:  "guard/crew.go",
		old:   `			m.signal(signal{next: turnApart})`,
		new:   `			m.signal(signal{next: turnAlone})`,
		tests: "guard/promises TestCombineRepeatsNeedNoTransaction",
	},
	{
		name:  "failed-change-of-a-crew-claims-nothing",
		loses: "A caller is told that it is sold out, though its request has been served.",
		file:  "guard/crew_claims.go",
		old:   `			failed = append(failed, m.serves.claim)`,
		new:   ``,
		tests: "guard/promises TestCombineRequestServedElsewhere",
	},
	{
		name:  "claim-of-a-crew-proves-nothing",
		loses: "A COMMIT without an answer is unknown to a whole crew.",
		file:  "internal/dbtx/protect_each.go",
		old:   `t.underKey(), n.Claim`,
		new:   `t.underKey(), false`,
		tests: "guard/promises TestCombineRequestsProveTheCommit",
	},
	{
		name:  "purged-request-is-an-overlap",
		loses: "A repeat that meets the purge pages people.",
		file:  "guard/claim.go",
		old:   `	return k.record == nil || k.record.Held != k.held`,
		new:   `	return k.record != nil && k.record.Held != k.held`,
		tests: "guard/promises TestOncePurgedBetween",
	},
	{
		name:  "print-is-not-compared",
		loses: "A request with other content gets the answer of the first.",
		file:  "once/request.go",
		old:   `string(stored) != p.sum`,
		new:   `false`,
		tests: "guard/promises TestFor TestOnce",
	},
	{
		name:  "mark-is-believed",
		loses: "After a restore of the database, requests are refused whose effects are gone.",
		file:  "guard/claim.go",
		old:   `	if k.record != nil {`,
		new:   `	if true {`,
		tests: "guard/promises TestOnceForgotten",
	},
	{
		name:  "refusal-keeps-the-effects",
		loses: "A declined payment is booked.",
		file:  "guard/once.go",
		old:   `		if refused && (unfit != nil || !t.OnlyClaimed()) {`,
		new:   `		if refused && unfit != nil {`,
		tests: "guard/promises TestRefuse",
	},
	{
		name:  "refusal-is-stored-once",
		loses: "A declined payment is an error of the database, and a repeat decides it anew.",
		file:  "guard/once.go",
		old:   `	s.budget.stores()`,
		new:   `	s.budget.begun = false`,
		tests: "guard/promises TestRefusalIsStoredAgain",
	},
	{
		name:  "request-runs-again-unasked",
		loses: "Without Retries an operation runs twice, and what it leaves behind in memory is there twice.",
		file:  "guard/budget.go",
		old: `	}
	return b.work
}`,
		new: `	}
	return max(b.work, b.claim)
}`,
		tests: "internal/sim TestTraces",
	},
	{
		name:  "first-caller-gets-its-own-value",
		loses: "The first answer and its repeats are different.",
		file:  "guard/once.go",
		old:   `		if err := a.decode(o, &v); err != nil {`,
		new:   `		if err := a.decode(o, &v); err != nil && a.replayed {`,
		tests: "guard/promises TestOnceDecodesBeforeTheCommit",
	},
	{
		name:  "rows-judged-by-the-request",
		loses: "Two requests that insert one row at once are an alarm.",
		file:  "guard/plan.go",
		old: `	if k := p.find(key); k != nil && k.request {
		return ""
	}`,
		new:   ``,
		tests: "guard/promises TestOnceJudgesNoOtherRows",
	},
	{
		name:  "row-of-another-request-is-the-request",
		loses: "A message that was rolled back is acknowledged.",
		file:  "guard/finish.go",
		old:   `	case v == duplicate && (r.request != nil || r.reserves && !onClaim(conflict)):`,
		new:   `	case false:`,
		tests: "guard/promises TestRowOfAnotherRequest",
	},
	{
		name:  "row-of-another-request-is-remembered",
		loses: "A call without a request is refused for as long as the first layer remembers what a request has met and not done.",
		file:  "guard/finding.go",
		old:   `	about := !serves || onClaim(conflict)`,
		new:   `	about := true`,
		tests: "guard/promises TestMarkIsOfTheRequest",
	},
	{
		name:  "lock-wait-is-not-restored",
		loses: "Statements of the operation give up after a second.",
		file:  "internal/dbtx/claim.go",
		old:   `	if bound.During == "" ||`,
		new:   `	if true ||`,
		tests: "guard/promises TestForRestoresTheSession",
	},
	{
		name:  "claim-proves-nothing",
		loses: "After a COMMIT without an answer a caller does not know whether to ask again.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	if i.stamp != 0 && stamp == i.stamp {`,
		new:   `	if i.stamp != 0 && stamp == i.stamp && !i.Row.Kept {`,
		tests: "guard/promises TestLostCommits",
	},
	{
		name:  "any-claim-proves-the-commit",
		loses: "A caller is told that it was done what another has done, and gets no answer of it.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	if i.stamp != 0 && stamp == i.stamp {`,
		new:   `	if i.stamp != 0 && (stamp == i.stamp || i.Row.Kept) {`,
		tests: "internal/sim TestRequests",
	},
	{
		name:  "answer-outside-of-the-transaction",
		loses: "An answer is kept of what was rolled back, and no repeat can store its own.",
		file:  "guard/once.go",
		old: `		return claim.Insert(ctx, conn, database, sum[:], a.answer)
`,
		new: `		pool, err := a.guard.db.DB()
		if err != nil {
			return err
		}
		other, err := pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer other.Close()
		return claim.Insert(ctx, other, database, sum[:], a.answer)
`,
		tests: "internal/sim TestRequests",
	},
	{
		name:  "unread-claim-is-an-alarm",
		loses: "A connection that breaks, and a client that uses an id again, page people.",
		file:  "guard/claim.go",
		old:   `	return k.record == nil || k.record.Held != k.held`,
		new:   `	return k.record != nil && k.record.Held != k.held`,
		tests: "guard/promises TestForUnreadClaim",
	},
	{
		name:  "requests-purged-with-their-answers",
		loses: "A repeat after a day takes effect again.",
		file:  "once/purger.go",
		old:   `	return p.empty(ctx, "belay_once", p.cfg.Keep)`,
		new:   `	return p.empty(ctx, "belay_once", p.cfg.KeepAnswers)`,
		tests: "once TestPurger",
	},
	{
		name:  "refusals-purged-as-answers",
		loses: "A repeat of a declined payment is told after a day that it was made.",
		file:  "once/table.go",
		old:   `		return table + " WHERE refused = 0"`,
		new:   `		return table`,
		tests: "once TestPurgerKeepsRefusals",
	},
	{
		name:  "claims-purged-apart",
		loses: "An answer outlives its request, and no repeat can store its own.",
		file:  "once/delete.go",
		old:   `res, err := c.ExecContext(`,
		new:   `res, err := t.db.Exec(`,
		tests: "once TestPurgerDeletesBothOrNone",
	},
	{
		name:  "refused-is-served",
		loses: "Who asks for a declined payment is told that it was made.",
		file:  "guard/for.go",
		old:   `return !k.record.Refused(), nil`,
		new:   `return true, nil`,
		tests: "guard/promises TestRefusedIsNotServed",
	},
	{
		name:  "refused-is-done",
		loses: "A message about a declined payment is acknowledged as if it had taken effect.",
		file:  "guard/claim.go",
		old:   `	case k.record.Refused() && !k.answers:`,
		new:   `	case false:`,
		tests: "guard/promises TestRefusedIsNotServed",
	},
	{
		name:  "lost-commits-are-reported-at-once",
		loses: "A new primary that applies what it has received pages people.",
		file:  "guard/canary.go",
		old: `	missing, now, err := c.find(missing)
	if err != nil`,
		new: `	_, now, err := c.find(missing)
	if err != nil`,
		tests: "guard/promises TestMissingForAMoment",
	},
	{
		name:  "purged-claims-are-lost",
		loses: "A failover pages people where requests are kept for a minute.",
		file:  "guard/canary.go",
		old:   `found && attempt == k.attempt || purged {`,
		new:   `found && attempt == k.attempt || purged && false {`,
		tests: "guard/promises TestPurgedIsNotLost",
	},
	{
		name:  "lost-commits-of-a-crew",
		loses: "Nobody learns that a failover has lost commits of a hot key.",
		file:  "guard/crew_claims.go",
		old:   `		c.keep(t, made)`,
		new:   `		_ = made`,
		tests: "guard/promises TestLostCrew",
	},
	{
		name:  "loss-in-two-events",
		loses: "A restored backup pages people twice.",
		file:  "guard/canary.go",
		old:   `	c.sought = union(c.sought, c.recent())`,
		new:   `	_ = union`,
		tests: "guard TestCanaryGathers",
	},
	{
		name:  "lost-commits-are-reported-twice",
		loses: "A second failover reports what the first one has lost.",
		file:  "guard/canary.go",
		old:   `	c.strike(missing)`,
		new:   ``,
		tests: "guard/promises TestLostCommitsAreReported",
	},
}
