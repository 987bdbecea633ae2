package mutants

// databaseMutants break the second layer: what the database refuses, and what is seen of
// it.
var databaseMutants = []mutant{
	{
		name:  "version-not-compared",
		loses: "The second of two updates of one version writes over the first.",
		file:  "dbguard/version_where.go",
		old:   `	eq(f.DBName, Version(r.Version))`,
		new:   `	_ = f`,
		tests: "dbguard TestCompare",
	},
	{
		name:  "version-not-raised",
		loses: "The second of two updates of one version writes over the first.",
		file:  "dbguard/version_update.go",
		old:   `SQL: "? + 1"`,
		new:   `SQL: "? + 0"`,
		tests: "dbguard TestEveryUpdateCounts",
	},
	{
		name:  "save-writes-past-the-version",
		loses: "Saving a slice writes over the updates of others.",
		file:  "dbguard/version_insert.go",
		old:   `	if on.UpdateAll {`,
		new:   `	if on.UpdateAll && len(on.DoUpdates) > 0 {`,
		tests: "dbguard TestWritesThatBypassVersions",
	},
	{
		name:  "part-of-the-rows-is-enough",
		loses: "An update of several rows succeeds though one of them is another's by now.",
		file:  "dbguard/written.go",
		old:   `	case db.RowsAffected >= int64(len(expected.Rows)):`,
		new:   `	case db.RowsAffected > 0:`,
		tests: "internal/dbtx TestBatches",
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
		file:  "dbguard/conflict.go",
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
		file:  "internal/dbtx/callback_insert.go",
		old:   `			t.judge.SeeBefore(r, protected.Reading{})`,
		new:   `			_ = protected.Reading{Key: r.Values}`,
		tests: "guard TestRetryRemembersItsWrites TestDeadlockBehindAWrite",
	},
	{
		name:  "memory-forgets-own-updates",
		loses: "After a deadlock behind an update, an overlap comes back as a repeat.",
		file:  "internal/dbtx/callback_write.go",
		old:   `			t.judge.SeeBefore(img.Row, protected.Reading{Found: true, Version: img.From})`,
		new:   `			_ = img`,
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
		old:   `isMySQL(err, erLockDeadlock, erLockTableFull,`,
		new:   `isMySQL(err, erLockTableFull,`,
		tests: "internal/dbtx TestDeadlock",
	},
	{
		name:  "no-look-after-a-deadlock",
		loses: "An insert that lost a deadlock to a writer without the lock is taken for a repeat.",
		file:  "internal/dbtx/callback_insert.go",
		old:   `		t.lookAfterDeadlock(rows)`,
		new:   `		_ = rows`,
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
		old:   `		if st.Controls() || d.Name == "mysql" && st.SetsIsolation() {`,
		new:   `		if d.Name == "mysql" && st.SetsIsolation() {`,
		tests: "internal/dbtx TestAdmissible TestTransactionControlIsRefused",
	},
	{
		name:  "isolation-level-may-be-set",
		loses: "All later overlaps on a pooled connection come back as repeats.",
		file:  "internal/dbtx/watch.go",
		old:   `		if st.Controls() || d.Name == "mysql" && st.SetsIsolation() {`,
		new:   `		if st.Controls() {`,
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
		old: `	if err := t.usable(); err != nil {
		t.Rollback()
		return err`,
		new: `	if err := t.usable(); err != nil {
		return err`,
		tests: "internal/dbtx TestNothingIsPooledOpen",
	},
	{
		name:  "open-transaction-is-pooled",
		loses: "The next request runs in a transaction that nobody commits.",
		file:  "internal/dbtx/end.go",
		old: `	if err := t.exec("ROLLBACK"); err != nil {
		t.conn.Discard()
	}`,
		new:   `	_ = t.exec("ROLLBACK")`,
		tests: "internal/dbtx TestUnsentEndIsNotPooled",
	},
	{
		name:  "rows-of-other-keys-are-judged",
		loses: "A row whose text differs in case from this key's is judged as this key's.",
		file:  "internal/dbtx/evidence/note.go",
		old:   `		if !j.Reader.SpelledOtherwise(j.Key, s.row, now, given) {`,
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
		name:  "stamp-not-set",
		loses: "On MySQL the outcome of each update whose answer is lost is unknown.",
		file:  "dbguard/version_update.go",
		old:   `		next = append(next, assign(stamp, randomStamp()))`,
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
		file:  "internal/dbtx/resolve.go",
		old: `	if err := t.dialect.EndSession(ctx, c, t.conn.Session); err != nil {
		return Unresolved, err
	}
	// Only`,
		new:   `	// Only`,
		tests: "internal/dbtx TestResolveAwaitsTheSession TestCommittedSurvivesACrash",
	},
	{
		name:  "old-session-not-awaited",
		loses: "A caller is told that its operation is done, and a crash undoes it.",
		file:  "internal/dbtx/dialect/mysql.go",
		old: `		case erNoSuchThread:
			return nil`,
		new: `		case 0, erNoSuchThread:
			return nil`,
		tests: "internal/dbtx TestCommittedSurvivesACrash TestResolveAwaitsTheSession",
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
		old:   `			_, err = c.ExecContext(ctx, fmt.Sprintf("KILL %d", s.ID))`,
		new:   `			_, err = c.ExecContext(ctx, fmt.Sprintf("DO %d", s.ID))`,
		tests: "internal/dbtx TestUnknownCommit TestResolveAwaitsTheSession",
	},
	{
		name:  "running-transaction-is-rolled-back",
		loses: "On PostgreSQL an operation is reported as failed, and its COMMIT takes effect later.",
		file:  "internal/dbtx/resolve.go",
		old:   `		case "in progress": // in another session than was known, behind a pooler`,
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
		tests: "internal/dbtx TestNumberAfterCrash",
	},
	{
		name:  "wait-for-a-replica-cut-short",
		loses: "A commit that no replica has is made visible, and lost at the next failover.",
		file:  "internal/dbtx/dialect/mysql.go",
		old:   `		if err == nil && !replicating {`,
		new:   `		if err == nil {`,
		tests: "internal/dbtx TestResolveLeavesReplicationAlone",
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
