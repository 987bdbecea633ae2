package mutants

// databaseMutants break the second layer: what the database refuses, and what is seen of
// it.
var databaseMutants = []mutant{
	{
		name:  "version-not-compared",
		loses: "The second of two updates of one version writes over the first.",
		file:  "internal/rowversion/where.go",
		old:   `	eq(f.DBName, Version(r.Version))`,
		new:   `	_ = f`,
		tests: "dbguard TestCompare",
	},
	{
		name:  "version-not-raised",
		loses: "The second of two updates of one version writes over the first.",
		file:  "internal/rowversion/update.go",
		old:   `strconv.FormatInt(steps, 10)`,
		new:   `strconv.FormatInt(steps-1, 10)`,
		tests: "dbguard TestEveryUpdateCounts",
	},
	{
		name:  "save-writes-past-the-version",
		loses: "Saving a slice writes over the updates of others.",
		file:  "internal/rowversion/insert.go",
		old:   `	if on.UpdateAll {`,
		new:   `	if on.UpdateAll && len(on.DoUpdates) > 0 {`,
		tests: "dbguard TestWritesThatBypassVersions",
	},
	{
		name:  "resembling-server-is-believed",
		loses: "On TiDB or CockroachDB a commit that is shown late is reported as rolled back.",
		file:  "internal/dbtx/resolve.go",
		old:   `	case t.conn.Session.Family.Resembles():`,
		new:   `	case false:`,
		tests: "internal/dbtx TestResemblingServer",
	},
	{
		name:  "part-of-the-rows-is-enough",
		loses: "An update of several rows succeeds though one of them is another's by now.",
		file:  "dbguard/written.go",
		old:   `	case db.RowsAffected == n:`,
		new:   `	case db.RowsAffected > 0:`,
		tests: "internal/dbtx TestBatches",
	},
	{
		name:  "two-rows-for-one",
		loses: "An update writes two rows, as the primary key of the model is none of the table's.",
		file:  "dbguard/written.go",
		old:   `	case db.RowsAffected > n:`,
		new:   `	case db.RowsAffected < 0:`,
		tests: "guard TestUpdateOfTwoRows",
	},
	{
		name:  "indexes-are-never-read-again",
		loses: "An index that is dropped while a process runs protects rows for ever.",
		file:  "internal/dbtx/catalogue/cache.go",
		old:   `	if t.Begun.Sub(at) >= maxAge {`,
		new:   `	if t.Begun.IsZero() {`,
		tests: "internal/dbtx/catalogue TestIndexesAreReadAgain",
	},
	{
		name:  "claims-without-their-key",
		loses: "A request takes effect at every repeat, as its table has lost its key.",
		file:  "internal/dbtx/claim.go",
		old:   `	return t.protectPrimary(m, protected.Row{Kept: true})`,
		new:   `	return t.protect(m.Row(m.Primary(), protected.Row{Kept: true}))`,
		tests: "guard TestForWithoutItsKey",
	},
	{
		name:  "version-zero-is-loaded",
		loses: "A late holder overwrites the update of a row that has no version.",
		file:  "internal/dbtx/callback_query.go",
		old:   `ok && version < 1 && db.Error == nil {`,
		new:   `ok && version < 0 && db.Error == nil {`,
		tests: "guard TestVersionZeroIsRefused",
	},
	{
		name:  "version-beyond-its-column",
		loses: "Two updates bring the same version, which is at the limit of its column.",
		file:  "internal/dbtx/write.go",
		old:   `ok && highest > limit {`,
		new:   `ok && highest < limit {`,
		tests: "guard TestVersionAtItsLimit",
	},
	{
		name:  "swallowed-insert-is-done",
		loses: "An insert that a trigger has left out is reported as done.",
		file:  "guard/change.go",
		old:   `made.RowsAffected == 0 && !made.DryRun`,
		new:   `made.RowsAffected < 0 && !made.DryRun`,
		tests: "guard TestSwallowedInsert",
	},
	{
		name:  "cut-keys-are-protected",
		loses: "Two keys are one row, as the database cuts both to the same.",
		file:  "internal/dbtx/reader/fits.go",
		old:   `		case !q.Session.Strict && isCut(`,
		new:   `		case q.Session.Strict && isCut(`,
		tests: "guard TestKeyThatIsCut",
	},
	{
		name:  "key-of-the-model",
		loses: "A primary key that only the model has protects rows, and a repeat is committed.",
		file:  "internal/dbtx/protect.go",
		old:   `	if err != nil || catalogue.IsUnique(indexes, m.Primary()) {`,
		new:   `	if err != nil || indexes != nil {`,
		tests: "guard TestKeyOfTheModelAlone",
	},
	{
		name:  "no-snapshot",
		loses: "An overlap of inserts comes back as a repeat, and nobody reports it.",
		file:  "internal/dbtx/dialect/dialect.go",
		old:   `"START TRANSACTION WITH CONSISTENT SNAPSHOT"`,
		new:   `"START TRANSACTION"`,
		tests: "guard TestOverlapOfInserts",
	},
	{
		name:  "no-look-before-on-postgres",
		loses: "On PostgreSQL an overlap of inserts comes back as a repeat.",
		file:  "internal/dbtx/evidence/first.go",
		old:   `	if j.Reader.Session.Snapshot && !j.Reader.Session.RefusesChanged || j.Journal.Touched(r) {`,
		new:   `	if !j.Reader.Session.RefusesChanged || j.Journal.Touched(r) {`,
		tests: "guard TestOverlapOfInserts",
	},
	{
		name:  "conflict-without-evidence",
		loses: "Overlaps and repeats come back as conflicts of the business, and nobody reports them.",
		file:  "internal/dbtx/evidence/judge.go",
		old:   `	if c.Err != nil && j.Reader.Dialect.Aborts || j.examine(c) != nil {`,
		new:   `	if c.Err != nil && j.Reader.Dialect.Aborts {`,
		tests: "guard TestInsertOnce TestOverlapOfInserts",
	},
	{
		name:  "values-in-an-error",
		loses: "The text of a conflict, which is logged, has the values of a row.",
		file:  "internal/conflict/conflict.go",
		old:   `	if len(c.Columns) > 0 {`,
		new: `	if c.Err != nil {
		text += ": " + c.Err.Error()
	}
	if len(c.Columns) > 0 {`,
		tests: "internal/dbtx TestConflictNamesNoValues",
	},
	{
		name:  "null-names-a-row",
		loses: "A key is said to protect a row of which there may be any number.",
		file:  "internal/dbtx/protect.go",
		old:   `		if sqlvalue.IsNull(v) {`,
		new:   `		if sqlvalue.IsNull(v) && r.Named {`,
		tests: "internal/dbtx TestNullInKeys TestKeyMadeNull",
	},
	{
		name:  "insert-guesses-its-index",
		loses: "A key protects another row than its user means.",
		file:  "internal/dbtx/protect.go",
		old: `	case 1:
		return`,
		new: `	case 1, 2:
		return`,
		tests: "internal/dbtx TestProtectNew",
	},
	{
		name:  "every-repeat-has-changed",
		loses: "A request with an old version is reported as a lock failure.",
		file:  "internal/dbtx/protected/reading.go",
		old:   `	return a.Version != 0 && b.Version > a.Version`,
		new:   `	return a.Version != 0 && b.Version >= a.Version`,
		tests: "guard TestRepeatOfAnUpdatedRow TestUpdateWithOldVersion",
	},
	{
		name:  "memory-forgets-own-inserts",
		loses: "After a deadlock behind an insert, an overlap comes back as a repeat.",
		file:  "internal/dbtx/insert.go",
		old:   `			t.judge.SeeBefore(r, protected.Reading{})`,
		new:   `			_ = protected.Reading{Key: r.Values}`,
		tests: "guard TestRetryRemembersItsWrites TestDeadlockBehindAWrite",
	},
	{
		name:  "memory-forgets-own-updates",
		loses: "After a deadlock behind an update, an overlap comes back as a repeat.",
		file:  "internal/dbtx/write.go",
		old:   `			t.judge.SeeBefore(img.Row, protected.Reading{Found: true, Version: img.From})`,
		new:   `			_ = protected.Reading{Version: img.From}`,
		tests: "guard TestRetryRemembersItsWrites TestDeadlockBehindAWrite",
	},
	{
		name:  "memory-forgets-a-read",
		loses: "A row that changed between two reads of an operation is not noticed.",
		file:  "internal/dbtx/evidence/first.go",
		old:   `	if first := j.Memory.See(r, now); first.ChangedTo(now) {`,
		new:   `	if first, ok := j.Memory.Recall(r); ok && first.ChangedTo(now) {`,
		tests: "internal/dbtx TestSecondAttempt TestReadForUpdate TestRivalAtWork",
	},
	{
		name:  "memory-of-another-server",
		loses: "A read of a server that is behind makes an alarm of a repeat.",
		file:  "internal/dbtx/protected/memory.go",
		old:   `	if m.server != server {`,
		new:   `	if m.server == "" {`,
		tests: "internal/dbtx/protected TestMemoryIsOfOneServer",
	},
	{
		name:  "transaction-goes-on-after-a-deadlock",
		loses: "The statement after a deadlock commits alone, without the others.",
		file:  "internal/dbtx/dialect/errors.go",
		old:   `sqlerr.IsMySQL(err, erLockDeadlock, erLockTableFull,`,
		new:   `sqlerr.IsMySQL(err, erLockTableFull,`,
		tests: "internal/dbtx TestDeadlock",
	},
	{
		name:  "no-look-after-a-deadlock",
		loses: "An insert that lost a deadlock to a writer without the lock is taken for a repeat.",
		file:  "internal/dbtx/callback_insert.go",
		old:   `		t.lookAfterDeadlock(t.rows.Among(w))`,
		new:   `		_ = w`,
		tests: "guard TestThreeInserts TestRetryHidesNoOverlap",
	},
	{
		name:  "savepoint-undoes-no-memory",
		loses: "After a rollback to a savepoint a row in memory has a version that was never written.",
		file:  "internal/dbtx/journal/journal.go",
		old:   `undo, j.undo = slices.Clone(j.undo[p.undo:]), j.undo[:p.undo]`,
		new:   `j.undo = j.undo[:p.undo]`,
		tests: "internal/dbtx TestUndoneInMemory",
	},
	{
		name:  "savepoint-keeps-the-writes",
		loses: "A write that was rolled back counts as one that guards the transaction.",
		file:  "internal/dbtx/journal/journal.go",
		old:   `		j.writes = j.writes[:p.writes]`,
		new:   `		_ = p.writes`,
		tests: "internal/dbtx TestCoverage",
	},
	{
		name:  "commit-admitted",
		loses: "An operation commits its transaction itself, unseen.",
		file:  "internal/dbtx/watch.go",
		old:   `		if st.Controls() || d.Name == "mysql"`,
		new:   `		if d.Name == "mysql"`,
		tests: "internal/dbtx TestAdmissible TestTransactionControlIsRefused",
	},
	{
		name:  "isolation-level-may-be-set",
		loses: "All later overlaps on a pooled connection come back as repeats.",
		file:  "internal/dbtx/watch.go",
		old:   `		if st.Controls() || d.Name == "mysql" && st.SetsLater() ||`,
		new:   `		if st.Controls() ||`,
		tests: "guard TestIsolation TestIsolationOfASession",
	},
	{
		name:  "isolation-set-outside-is-not-noticed",
		loses: "All later overlaps on a pooled connection come back as repeats.",
		file:  "internal/dbtx/callback_inside.go",
		old:   `		p.forgetSessions()`,
		new:   `		_ = p`,
		tests: "guard TestIsolationOfASession TestIsolation",
	},
	{
		name:  "statement-outside-the-transaction",
		loses: "A write of the operation stays though the operation was rolled back.",
		file:  "internal/dbtx/callback_inside.go",
		old:   `	return t != nil && t != txOf(stmt)`,
		new:   `	return t != nil && t.hasEnded()`,
		tests: "guard TestOuterDB",
	},
	{
		name:  "commit-ends-with-the-caller",
		loses: "A COMMIT whose caller leaves is not sent, or its outcome is not known.",
		file:  "internal/dbtx/tx.go",
		old: `	ctx, cancel := t.detached()
	defer cancel()
	_, err :=`,
		new: `	ctx, cancel := context.WithTimeout(t.ctx, t.options.EndTimeout)
	defer cancel()
	_, err :=`,
		tests: "internal/dbtx TestEndAfterTheContext TestConnectionIsKept",
	},
	{
		name:  "refused-commit-ends-nothing",
		loses: "A transaction whose COMMIT was refused keeps its connection and its row locks.",
		file:  "internal/dbtx/end.go",
		old: `		t.conn.Give()
		t.Rollback()
		return err`,
		new: `		t.conn.Give()
		return err`,
		tests: "internal/dbtx TestNothingIsPooledOpen",
	},
	{
		name:  "open-transaction-is-pooled",
		loses: "The next request runs in a transaction that nobody commits.",
		file:  "internal/dbtx/end.go",
		old: `	if err := t.exec(t.conn, "ROLLBACK"); err != nil {
		t.conn.Discard()
	}`,
		new:   `	_ = t.exec(t.conn, "ROLLBACK")`,
		tests: "internal/dbtx TestUnsentEndIsNotPooled",
	},
	{
		name:  "undone-by-galera-goes-on-alone",
		loses: "What follows a transaction that a Galera node has undone is committed without the rest.",
		file:  "internal/dbtx/dialect/session.go",
		old:   `{ return s.Galera && s.Autocommit }`,
		new:   `{ return false }`,
		tests: "internal/dbtx/dialect TestBeginOfASession",
	},
	{
		name:  "broken-conflict-is-not-read-again",
		loses: "An overlap is taken for a repeat if the connection breaks at the conflict.",
		file:  "internal/dbtx/newtransaction.go",
		old:   `	t.reader.Use(t.front.On(c), c)`,
		new:   `	_ = c`,
		tests: "internal/dbtx TestConnectionBreaksAtAConflict",
	},
	{
		name:  "rows-of-other-keys-are-judged",
		loses: "A row whose text differs in case from this key's is judged as this key's.",
		file:  "internal/dbtx/evidence/note.go",
		old:   `		if !j.Reader.SpelledOtherwise(s.row, now, given) {`,
		new:   `		if len(given) > 0 {`,
		tests: "guard TestSpellingsOfOneRow TestRowOfAnotherKey",
	},
	{
		name:  "conflict-waits-for-the-rival",
		loses: "A refused caller waits until the one that holds its row is done.",
		file:  "internal/dbtx/reader/read.go",
		old:   `		lock = q.Dialect.Share + " NOWAIT"`,
		new:   `		lock = q.Dialect.Share`,
		tests: "internal/dbtx TestJudgingDoesNotWait TestLockedRowProvesNothing",
	},
}

// resolveMutants break the search for the outcome of a COMMIT that was not answered.
var resolveMutants = []mutant{
	{
		name:  "proof-by-equal-values",
		loses: "Two callers are told that they updated a row that one of them has updated.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	case i.From != 0 && version == i.From, another && !i.deleted: // or it was deleted and made again`,
		new: `	case i.version != 0 && version == i.version && !another:
		return Proof{Outcome: Committed, Held: true}
	case i.From != 0 && version == i.From, another && !i.deleted:`,
		tests: "guard TestLateHolderWritesTheSame",
	},
	{
		name:  "missing-stamp-proves",
		loses: "On MySQL any row without a stamp proves that a COMMIT took effect.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	if i.stamp != 0 && stamp == i.stamp {`,
		new:   `	if stamp == i.stamp {`,
		tests: "internal/dbtx TestUnknownCommit TestRivalOfTheSameValues",
	},
	{
		name:  "rename-is-a-repeat",
		loses: "An UPDATE in SQL that gives a row the name of a protected one is reported as done before.",
		file:  "internal/dbtx/raw.go",
		old:   "if !r.Statements[0].OnlyInserts() {",
		new:   "if r.Statements[0].Words()[0] == `` {",
		tests: "guard TestSQLRenameIsNoRepeat",
	},
	{
		name:  "number-is-each-text",
		loses: "On MySQL an INSERT in SQL of a number for a text is reported as a repeat of another text.",
		file:  "internal/dbtx/raw_insert.go",
		old:   `				v = asText(v)`,
		new:   `				_ = asText`,
		tests: "guard TestSQLNumberForAText",
	},
	{
		name:  "row-without-stamp",
		loses: "On MySQL the outcome of each update in SQL whose answer is lost is unknown.",
		file:  "internal/dbtx/update_row.go",
		old:   `	if w.Stamp != 0 {`,
		new:   `	if false {`,
		tests: "internal/dbtx TestStampOfARow",
	},
	{
		name:  "stamp-not-set",
		loses: "On MySQL the outcome of each update whose answer is lost is unknown.",
		file:  "internal/rowversion/update.go",
		old:   `		next = append(next, assign(stamp, RandomStamp()))`,
		new:   `		_ = stamp`,
		tests: "internal/dbtx TestStampProves",
	},
	{
		name:  "server-not-compared",
		loses: "After a failover the rows of another server say what became of a COMMIT.",
		file:  "internal/dbtx/resolve.go",
		old:   `		if err == nil && now.Server != t.conn.Session.Server {`,
		new:   `		if err == nil && now.Server == "" {`,
		tests: "internal/dbtx TestAnotherServer",
	},
	{
		name:  "old-session-not-ended",
		loses: "An operation is reported as failed, and its COMMIT takes effect a moment later.",
		file:  "internal/dbtx/session.go",
		old: `		return t.dialect.EndSession(ctx, c, t.conn.Session)
	case restarted:`,
		new: `		return nil
	case restarted:`,
		tests: "internal/dbtx TestResolveAwaitsTheSession",
	},
	{
		name:  "refusal-of-a-leaving-member-is-believed",
		loses: "A member leaves its group, a caller is told that nothing was done, and the others do it.",
		file:  "internal/dbtx/dialect/commit.go",
		old:   `erReadOnlyTx, erReadOnlyMode)`,
		new:   `erReadOnlyTx, erReadOnlyMode, erRolledBack)`,
		tests: "internal/dbtx/dialect TestNotCommitted",
	},
	{
		name:  "stranger-is-ended",
		loses: "Behind MySQL Router the transaction of another client is broken off.",
		file:  "internal/dbtx/session.go",
		old:   `	if free || err != nil || t.database.pooled.Load() {`,
		new:   `	if free = false; free || err != nil || t.database.pooled.Load() {`,
		tests: "internal/dbtx TestFreeRowsEndNoSession",
	},
	{
		name:  "session-of-long-ago-is-ended",
		loses: "Behind a pooler an innocent client's transaction is broken off.",
		file:  "internal/dbtx/resolve.go",
		old:   `t.dialect.EndTransaction(ctx, c, t.xid)`,
		new:   `t.dialect.EndSession(ctx, c, t.conn.Session)`,
		tests: "internal/dbtx TestTransactionsOwnSessionIsEnded",
	},
	{
		name:  "demoted-server-is-believed",
		loses: "A caller is told that its operation is done by a server that lost it in a failover.",
		file:  "internal/dbtx/resolve.go",
		old:   `		err = t.dialect.Writer(ctx, c, now)`,
		new:   `		err = nil`,
		tests: "internal/dbtx TestResolveOnTheWriter",
	},
	{
		name:  "old-session-not-awaited",
		loses: "A caller is told that its operation is done, and a crash undoes it.",
		file:  "internal/dbtx/dialect/mysql.go",
		old:   `		if err == nil && !commits {`,
		new:   `		if err == nil {`,
		tests: "internal/dbtx TestCommittedSurvivesACrash",
	},
	{
		name:  "lock-not-asked-for-a-proof",
		loses: "A row that another holder deleted proves that nothing was committed.",
		file:  "internal/dbtx/resolve.go",
		old:   `		err = t.options.Held()`,
		new:   `		err = nil`,
		tests: "internal/dbtx TestResolveWithoutTheLock TestMissingRowNeedsTheLease",
	},
	{
		name:  "session-awaited-and-not-ended",
		loses: "The outcome of a COMMIT whose session hangs is unknown, and not a clean error.",
		file:  "internal/dbtx/dialect/mysql.go",
		old:   `fmt.Sprintf(kill, s.ID)`,
		new:   `fmt.Sprintf("DO "+kill[len(kill)-2:], s.ID)`,
		tests: "internal/dbtx TestUnknownCommit TestResolveAwaitsTheSession",
	},
	{
		name:  "running-transaction-is-rolled-back",
		loses: "On PostgreSQL an operation is reported as failed, and its COMMIT takes effect later.",
		file:  "internal/dbtx/resolve.go",
		old:   `		case "in progress": // its session is about to end`,
		new: `		case "in progress":
			return NotCommitted, nil`,
		tests: "internal/dbtx TestTransactionInProgressIsAwaited",
	},
	{
		name:  "old-version-proves-nothing",
		loses: "On MySQL an update that did not take effect is unknown, and not a clean error.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	case i.From != 0 && version == i.From, another && !i.deleted: // or`,
		new:   `	case another && !i.deleted: // or`,
		tests: "internal/dbtx TestUnknownCommit",
	},
	{
		name:  "name-not-found-proves",
		loses: "An insert whose row a trigger renamed is reported as failed, and is committed.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	if i.inserted && !slices.ContainsFunc(i.Row.Values, sqlvalue.MayChange) {`,
		new:   `	if i.inserted && !slices.ContainsFunc(i.Row.Values, sqlvalue.IsNull) {`,
		tests: "internal/dbtx/journal TestMissingNameThatMayChange",
	},
	{
		name:  "restart-not-noticed",
		loses: "After a restart the session of another program is ended.",
		file:  "internal/dbtx/dialect/mysql.go",
		old: `	case up+time.Second <= known:
		return true, err`,
		new: `	case up+time.Second <= known:
		return false, err`,
		tests: "internal/dbtx TestNumberAfterRestart",
	},
	{
		name:  "crash-of-postgres-not-noticed",
		loses: "After a crash of PostgreSQL the number of another transaction proves a commit.",
		file:  "internal/dbtx/dialect/dialect.go",
		old:   `return then.Run != now.Run, nil`,
		new:   `return now.Run == "", nil`,
		tests: "internal/dbtx TestNumberAfterCrash TestNumberIsGivenAgain",
	},
	{
		name:  "standby-not-awaited",
		loses: "A caller is told that its operation is done, and the standby, promoted, has none of it.",
		file:  "internal/dbtx/dialect/postgres.go",
		old:   `		_, err = c.ExecContext(ctx, pgsync.Message)`,
		new:   `		err = nil`,
		tests: "internal/dbtx TestResolveAwaitsTheStandby TestStandbyIsolatedPrimary",
	},
	{
		name:  "repeat-of-a-row-without-a-standby",
		loses: "A caller is told that its request was done before, and the standby, promoted, has none of it.",
		file:  "guard/attempt.go",
		old:   `cause := s.tx.Unsafe(); cause != nil && f.repeats(opErr)`,
		new:   `cause := s.tx.Unsafe(); cause == errPanicked && f.repeats(opErr)`,
		tests: "guard TestRepeatAwaitsTheStandby",
	},
	{
		name:  "answer-without-a-standby",
		loses: "A caller gets the answer of a request, and the standby, promoted, has neither.",
		file:  "internal/claim/claim.go",
		old:   `r == nil || !d.Standby {`,
		new:   `r == nil || d.Standby {`,
		tests: "guard TestRepeatAwaitsTheStandby",
	},
	{
		name:  "late-statement-runs-alone",
		loses: "A goroutine that outlives its operation writes a row behind the ROLLBACK.",
		file:  "internal/dbtx/pinned/turn.go",
		old: `	select {
	case c.turn.taken <- struct{}{}:
		return nil
	case <-c.turn.ctx.Done():
		return sql.ErrTxDone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Give ends the turn.
func (c *Conn) Give() { <-c.turn.taken }

// Refuse cuts short the statement that runs, and refuses those that wait for their turn.
func (c *Conn) Refuse() { c.turn.end() }`,
		new: `	_ = sql.ErrTxDone
	return nil
}

// Give ends the turn.
func (c *Conn) Give() {
	select {
	case <-c.turn.taken:
	default:
	}
}

// Refuse does nothing.
func (c *Conn) Refuse() {}`,
		tests: "internal/dbtx TestStatementBehindTheEnd",
	},
	{
		name:  "end-at-a-conflict-is-overlooked",
		loses: "On SQLite a statement behind ON CONFLICT ROLLBACK is committed alone.",
		file:  "internal/dbtx/state.go",
		old:   ` || t.endedBy(err)) {`,
		new:   `) {`,
		tests: "guard TestConflictThatEndsTheTransaction",
	},
	{
		name:  "indexes-of-another-schema",
		loses: "A tenant's table without its index takes a repeat, because another tenant's has one.",
		file:  "internal/dbtx/watch.go",
		old:   `		t.reader.Move()`,
		new:   ``,
		tests: "guard TestTableOfAnotherSchema",
	},
	{
		name:  "cut-stamp-is-anothers",
		loses: "A caller is told of a rollback, though its update was committed.",
		file:  "internal/dbtx/resolve.go",
		old:   `		img = img.WithoutStamp()`,
		new:   ``,
		tests: "internal/dbtx TestStampThatIsCut",
	},
	{
		name:  "routine-is-trusted",
		loses: "A procedure that commits leaves the rows of an operation that was rolled back.",
		file:  "internal/dbtx/routine.go",
		old:   `t.dialect.Name != "mysql" || `,
		new:   `t.dialect.Name == "mysql" || `,
		tests: "guard TestRoutineThatEndsTheTransaction TestClaimCommittedByARoutine",
	},
	{
		name:  "wait-for-a-standby-cut-short",
		loses: "Others see a row that the standby, promoted, has not.",
		file:  "internal/dbtx/dialect/postgres.go",
		old:   `CASE WHEN wait_event = 'SyncRep' THEN`,
		new:   `CASE WHEN wait_event = 'none' THEN`,
		tests: "internal/dbtx TestStandbyIsolatedPrimary",
	},
	{
		name:  "session-of-a-pooler-of-long-ago",
		loses: "Behind a pooler that has outlived the database an operation fails, and is committed later.",
		file:  "internal/dbtx/end.go",
		old:   `		t.conn.Session = s`,
		new:   `		_ = s`,
		tests: "internal/dbtx TestSessionOfAPoolerIsReadAgain",
	},
	{
		name:  "catalogue-not-read-again",
		loses: "After a moment in which the database refused a read, overlaps come back as repeats.",
		file:  "internal/dbtx/catalogue/cache.go",
		old:   `	if dialect.IsMissing(err) { // it knows no such catalogue`,
		new:   `	if dialect.FromServer(err) {`,
		tests: "internal/dbtx/catalogue TestFactsAreReadAgain",
	},
	{
		name:  "promotion-not-noticed",
		loses: "After a failover to the same address the successor's rows say what became of a COMMIT.",
		file:  "internal/dbtx/dialect/postgres.go",
		old:   `CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END),`,
		new:   `''),`,
		tests: "internal/dbtx TestStandbyAtTheSameAddress",
	},
	{
		name:  "wait-for-a-replica-cut-short",
		loses: "A commit that no replica has is made visible, and lost at the next failover.",
		file:  "internal/dbtx/dialect/mysql.go",
		old:   `"KILL SOFT %d"`,
		new:   `"KILL HARD %d"`,
		tests: "internal/dbtx TestSemiSyncLateCommit",
	},
	{
		name:  "recovered-commit-is-believed",
		loses: "A caller is told that its operation is done by a primary that has restarted, and the replica, promoted, has none of it.",
		file:  "internal/dbtx/resolve.go",
		old:   `restarted && (now.SemiSync || t.conn.Session.SemiSync)`,
		new:   `restarted && !restarted`,
		tests: "internal/dbtx TestSemiSyncRecovered",
	},
	{
		name:  "server-known-by-its-name",
		loses: "After a failover to a server with the same host name and port its rows say what became of a COMMIT.",
		file:  "internal/dbtx/dialect/mysql.go",
		old:   `[]string{"server_uuid", "server_id", "server_uid", "gtid_domain_id", "wsrep_node_name"}`,
		new:   `[]string{}`,
		tests: "internal/dbtx TestSemiSyncPromotedDuringCommit",
	},
	{
		name:  "outcome-looked-for-once",
		loses: "A database that is away for a moment makes each open COMMIT unknown.",
		file:  "internal/dbtx/resolve.go",
		old:   `	for dialect.Unreachable(err) && wait.Sleep(ctx, reconnectPause, nil) == nil {`,
		new:   `	if dialect.Unreachable(err) && wait.Sleep(ctx, reconnectPause, nil) == nil {`,
		tests: "internal/dbtx TestResolveAwaitsTheDatabase",
	},
	{
		name:  "outcome-looked-for-without-end",
		loses: "A Do does not return while the database is away.",
		file:  "internal/dbtx/resolve.go",
		old:   `wait.Sleep(ctx, reconnectPause, nil) == nil {`,
		new:   `wait.Sleep(t.ctx, reconnectPause, nil) == nil || ctx.Err() != nil {`,
		tests: "internal/dbtx TestResolveGivesUp",
	},
	{
		name:  "broken-commit-is-a-rollback",
		loses: "An operation is reported as failed that is committed, and the caller repeats it.",
		file:  "internal/dbtx/dialect/commit.go",
		old:   `	return errors.Is(err, driver.ErrBadConn) ||`,
		new:   `	return errors.Is(err, driver.ErrBadConn) || isBroken(err) ||`,
		tests: "guard TestLostCommits TestUnknownCommit",
	},
	{
		name:  "retried-key-is-taken-for-generated",
		loses: "On MySQL a row that another inserted with the same key proves a commit.",
		file:  "internal/dbtx/journal/proof.go",
		old:   `	if i.generated && generates {`,
		new:   `	if generates {`,
		tests: "internal/dbtx TestKeyNotWritten TestRivalOfTheSameValues TestUnknownCommit",
	},
}
