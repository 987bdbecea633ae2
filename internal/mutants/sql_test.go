package mutants

var sqlMutants = []mutant{
	{
		name:  "primary-key-unread",
		loses: "On a table of MySQL without its primary key everybody gets every lock.",
		file:  "lock/sqllock/engine.go",
		old:   `if err == nil && n > 0 {`,
		new:   `if err == nil && n < 0 {`,
		tests: "lock/sqllock TestTablesWithoutTheirKeys",
	},
	{
		name:  "row-granted-twice",
		loses: "The table grants a key that another process holds.",
		file:  "lock/sqllock/dialect.go",
		old: `
WHERE ` + "` + isFree + `" + ` OR belay_lock.owner = excluded.owner`,
		new: `
WHERE belay_lock.until_us > 0`,
		tests: "lock/sqllock TestSettings",
	},
	{
		name:  "grant-by-the-order-of-assignments",
		loses: "In a SQL mode of MariaDB nobody gets a lock that has expired.",
		file:  "lock/sqllock/dialect.go",
		old:   `until_us = IF(` + "` + isFree + `" + ` OR owner = ?, {now} + ?, until_us)`,
		new:   `until_us = IF(owner = ?, {now} + ?, until_us)`,
		tests: "lock/sqllock TestSettings",
	},
	{
		name:  "release-deletes-the-row",
		loses: "A holder gets a smaller token than the one before it, and a store that compares tokens refuses it.",
		file:  "lock/sqllock/release.go",
		old:   `"UPDATE belay_lock SET owner = {nobody}, until_us = {now} WHERE name`,
		new:   `"DELETE FROM belay_lock WHERE name`,
		tests: "lock/sqllock TestTokensGrowBesideTheClock",
	},
	{
		name:  "broken-connection-sent-nothing",
		loses: "A lock that was taken without an answer is not released, and stays until its ttl has passed.",
		file:  "lock/sqllock/errors.go",
		old:   `	return fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err)`,
		new:   `	return fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)`,
		tests: "lock/sqllock TestContract",
	},
	{
		name:  "panic-of-a-driver-keeps-a-connection",
		loses: "After a few panics of a driver no lock is granted or renewed until the process is restarted.",
		file:  "lock/sqllock/statement.go",
		old:   `		err = sqlconn.Watch(c, func() error { return f(c) })`,
		new: `		if err = f(c); false {
			sqlconn.Discard(c)
		}`,
		tests: "lock/sqllock TestPanicOfADriver",
	},
	{
		name:  "sweep-takes-locks",
		loses: "Now and then a holder loses its lock to a sweep.",
		file:  "lock/sqllock/sweep.go",
		old:   `const old = "until_us < {now} - ?"`,
		new:   `const old = "until_us - 86400000000 < {now} - ?"`,
		tests: "lock/sqllock TestSweep",
	},
	{
		name:  "marker-set-once",
		loses: "Until the sweep, work that is done once more is not marked, and is done again.",
		file:  "lock/sqllock/dialect.go",
		old:   `ON CONFLICT (name) DO UPDATE SET until_us = excluded.until_us"`,
		new:   `ON CONFLICT (name) DO NOTHING"`,
		tests: "lock/sqllock TestMarkAgain",
	},
	{
		name:  "autocommit-not-checked",
		loses: "On a connection without autocommit two callers get one lock.",
		file:  "lock/sqllock/dialect.go",
		old:   ` + 9223372036854775807 * (1 - CAST(@@autocommit AS SIGNED))`,
		new:   ``,
		tests: "lock/sqllock TestAutocommitIsOff",
	},
	{
		name:  "demoted-primary-kept",
		loses: "After a failover the pool stays on the old primary, and every lock is lost.",
		file:  "lock/sqllock/statement.go",
		old:   `if isSpent(err) {`,
		new:   `if false {`,
		tests: "lock/sqllock TestServerIsDemoted",
	},
}
