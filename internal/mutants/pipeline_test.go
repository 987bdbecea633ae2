package mutants

// pipelineMutants break the statements that are sent together.
var pipelineMutants = []mutant{
	{
		name:  "look-with-the-begin-is-forgotten",
		loses: "With pgx a row that another wrote under the lock is taken for one that was there before: nobody hears of the overlap.",
		file:  "internal/dbtx/evidence/first.go",
		old:   "	j.NoteAbsent(r)\n",
		new:   "",
		tests: "guard/pgxguard TestOverlapBehindOpening",
	},
	{
		name:  "dead-opening-is-the-callers",
		loses: "With pgx an operation fails because its connection was dead when it began.",
		file:  "guard/attempt.go",
		old:   `s.tx != nil && s.tx.Unopened()`,
		new:   `s.tx == nil`,
		tests: "guard/pgxguard TestDeadOpening",
	},
	{
		name:  "failed-transaction-is-committed",
		loses: "With pgx an operation is reported as done that PostgreSQL has rolled back: a statement in it had failed.",
		file:  "internal/dbtx/pinned/opening.go",
		old:   ` && c.opening.pipe.InTransaction()`,
		new:   ``,
		tests: "guard/pgxguard TestFailedBehindOpening",
	},
	{
		name:  "look-of-another-session-counts",
		loses: "Behind a pooler that spreads reads, a replica that is behind makes a repeat an alarm.",
		file:  "internal/dbtx/opening.go",
		old:   `if session != strconv.FormatUint(t.conn.Session.ID, 10) {`,
		new:   `if session == strconv.Itoa(0) {`,
		tests: "guard/pgxguard TestOpeningBehindPooler",
	},
	{
		name:  "claim-waits-for-the-operation",
		loses: "With pgx the limit of the wait for a claim stays for the statements of the operation.",
		file:  "internal/dbtx/opening.go",
		old:   `t.conn.Behind(set(bound.After), `,
		new:   `t.conn.Behind(`,
		tests: "guard/pgxguard TestOpening",
	},
}
