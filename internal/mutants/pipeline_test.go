package mutants

// pipelineMutants break the statements that are sent together.
var pipelineMutants = []mutant{
	{
		name:  "look-with-the-begin-is-forgotten",
		loses: "With pgx a row that another wrote under the lock is taken for one that was there before: nobody hears of the overlap.",
		file:  "internal/dbtx/evidence/first.go",
		old:   "	j.NoteAbsent(l.row)\n",
		new:   "",
		tests: "guard/pgxguard TestOverlapBehindPrelude",
	},
	{
		name:  "dead-prelude-is-the-callers",
		loses: "With pgx an operation fails because its connection was dead when it began.",
		file:  "guard/attempt.go",
		old:   `refused = s.tx.Abandon()`,
		new:   `refused = nil`,
		tests: "guard/pgxguard TestDeadPrelude",
	},
	{
		name:  "failed-transaction-is-committed",
		loses: "With pgx an operation is reported as done that PostgreSQL has rolled back: a statement in it had failed.",
		file:  "internal/dbtx/pinned/prelude.go",
		old:   ` && c.prelude.pipe.InTransaction()`,
		new:   ``,
		tests: "guard/pgxguard TestFailedBehindPrelude",
	},
	{
		name:  "look-of-another-session-counts",
		loses: "Behind a pooler that spreads reads, a replica that is behind makes a repeat an alarm.",
		file:  "internal/dbtx/prelude.go",
		old:   `if session != strconv.FormatUint(t.conn.Session.ID, 10) {`,
		new:   `if session == strconv.Itoa(0) {`,
		tests: "guard/pgxguard TestLookOfAnotherSession",
	},
	{
		name:  "claim-waits-for-the-operation",
		loses: "With pgx the limit of the wait for a claim stays for the statements of the operation.",
		file:  "internal/dbtx/prelude.go",
		old:   `set(bound.During), set(bound.After), `,
		new:   `set(bound.During), `,
		tests: "guard/pgxguard TestPrelude",
	},
	{
		name:  "look-passes-a-plugin",
		loses: "With pgx and a plugin that spreads a table over several, each repeat is an alarm.",
		file:  "internal/gormfront/load.go",
		old:   `found.Statement.ConnPool != f.db.Statement.ConnPool || `,
		new:   ``,
		tests: "guard/pgxguard TestPluginRewrites",
	},
	{
		name:  "look-is-not-between-statements-of-a-plugin",
		loses: "With pgx and a plugin that chooses a schema before each query, each repeat is an alarm.",
		file:  "internal/dbtx/prelude.go",
		old:   `t.conn.UsedSince(used) || t.unsent.Load() != unsent`,
		new:   `used+unsent < 0`,
		tests: "guard/pgxguard TestPluginAroundQuery",
	},
	{
		name:  "plugin-speaks-twice",
		loses: "With pgx and a plugin that sends a statement before each query, an operation has more round trips than without pgxguard.",
		file:  "internal/dbtx/prelude.go",
		old:   `t.database.keepApart(errSpoken, t.options.Logger)`,
		new:   ``,
		tests: "guard/pgxguard TestPluginSpeaksOnce",
	},
	{
		name:  "look-before-a-plugin-counts",
		loses: "With pgx and a plugin that chooses a schema before each INSERT, a row of another request is an alarm.",
		file:  "internal/dbtx/pinned/prelude.go",
		old:   `return c.prelude.others == 0`,
		new:   `return true`,
		tests: "guard/pgxguard TestPluginChoosesBeforeClaim",
	},
	{
		name:  "unsent-claim-is-a-plugins",
		loses: "With pgx one lock that is lost before a claim makes all operations slower for a minute.",
		file:  "internal/dbtx/pinned/conn.go",
		old:   `err == nil && !own {`,
		new:   `!own {`,
		tests: "guard/pgxguard TestClaimIsNotSent",
	},
	{
		name:  "claim-is-behind-a-plugin",
		loses: "With pgx and a plugin that chooses the schema of one table, a request takes effect once in a process that imports pgxguard, and once in another.",
		file:  "internal/dbtx/prelude.go",
		old:   `t.conn.Fail(errSpoken)`,
		new:   ``,
		tests: "guard/pgxguard TestPluginOfOneModel",
	},
	{
		name:  "look-is-dry-from-the-beginning",
		loses: "With pgx a look is taken for one that a plugin keeps from being sent: each operation has as many round trips as without pgxguard.",
		file:  "internal/gormfront/load.go",
		old: `	q := f.session(ctx)
	q.Statement`,
		new: `	q := f.session(ctx).Session(&gorm.Session{DryRun: true})
	q = q.Unscoped()
	q.Statement`,
		tests: "guard/pgxguard TestPrelude",
	},
	{
		name:  "plugin-hides-that-nothing-is-answered",
		loses: "With pgx and a plugin that sends a statement before each INSERT, the error of a database that does not answer says nothing of it.",
		file:  "internal/dbtx/prelude.go",
		old: `return t.conn.Failed()
}

// moved`,
		new: `return errSpoken
}

// moved`,
		tests: "guard/pgxguard TestPluginSpeaksUnanswered",
	},
	{
		name:  "plugin-hides-the-end-of-a-context",
		loses: "With pgx and a plugin that sends a statement before each INSERT, the error of an operation whose context has ended does not match that of the context.",
		file:  "internal/dbtx/prelude.go",
		old:   `(own || t.ctx.Err() == nil)`,
		new:   `(own && false || t.ctx.Err() == nil)`,
		tests: "guard/pgxguard TestPluginSpeaksAfterContext",
	},
	{
		name:  "limit-of-a-withheld-claim-stays",
		loses: "With pgx and a plugin that keeps a claim from being sent, the statements of the operation wait for a row no longer than a claim may.",
		file:  "internal/dbtx/claim.go",
		old:   `withheld && err == nil || !t.conn.OnlyClaims()`,
		new:   `!t.conn.OnlyClaims() || withheld && err != nil`,
		tests: "guard/pgxguard TestPluginWithholdsClaim",
	},
	{
		name:  "busy-claim-behind-a-plugin-waits",
		loses: "With pgx and a plugin that sends a statement before each INSERT, a repeat waits for the first try for minutes.",
		file:  "internal/dbtx/pinned/prelude.go",
		old:   `if c.prelude.insert && c.prelude.behind == nil {`,
		new:   `if false {`,
		tests: "guard/pgxguard TestPluginSpeaksBeforeABusyClaim",
	},
	{
		name:  "commit-on-a-dead-connection",
		loses: "With pgx each operation that is under way when the database dies has an outcome that nobody knows, though no COMMIT was executed.",
		file:  "internal/dbtx/pinned/prelude.go",
		old:   ` && time.Since(used) < lately`,
		new:   ` && !used.IsZero()`,
		tests: "guard/pgxguard TestServerDiesBeforeCommit",
	},
	{
		name:  "silent-database-is-asked-again",
		loses: "With pgx callers wait for a database that hangs several times as long.",
		file:  "internal/dbtx/prelude.go",
		old:   `&& !errors.Is(err, pinned.ErrNoAnswer) `,
		new:   ``,
		tests: "guard/pgxguard TestNoAnswerToPrelude",
	},
	{
		name:  "one-value-stops-all-preludes",
		loses: "With pgx a value that the database refuses, as a caller may send it, makes all operations slower for a minute.",
		file:  "guard/attempt.go",
		old: `	if refused != nil {
		prepared,`,
		new: `	if refused != nil {
		s.tx.KeepApart(refused)
		prepared,`,
		tests: "guard/pgxguard TestValueIsRefused",
	},
	{
		name:  "refused-prelude-is-tried-always",
		loses: "With pgx and a plugin that the prelude can't bear, each operation makes a connection.",
		file:  "internal/dbtx/databases.go",
		old:   `	d.until.Store(`,
		new:   `	_ = (`,
		tests: "guard/pgxguard TestRefusedPrelude",
	},
}
