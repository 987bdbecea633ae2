package model

// all is one of each fault.
var all = Budget{Lose: 1, Lapse: 1, Mute: 1, Cut: 1, Deadlock: 1, Kill: 1}

// two are two processes with a caller each; three, a third caller who is handed the lock
// of the first in memory.
var (
	two   = [callers]uint8{0, 1, nobody}
	three = [callers]uint8{0, 1, 0}
)

// Configs returns what `make model` searches.
func Configs() []*Config {
	cuts := Budget{Lose: 1, Lapse: 1, Mute: 1, Cut: 1}
	runs := Budget{Lose: 1, Lapse: 1, Mute: 1, Deadlock: 1, Kill: 1}
	deaf := Budget{Lose: 1, Lapse: 1, Mute: 2, Kill: 1}
	crash := Budget{Lose: 1, Cut: 1, Crash: 1, Kill: 1}
	stranger := Budget{Lose: 1, Cut: 1, Deadlock: 1, Write: 1}
	return []*Config{
		{Name: "mysql insert", Callers: two, Budget: runs},
		{Name: "mysql insert, lost COMMIT", Callers: two, Budget: cuts},
		{Name: "mysql insert, generated key", Callers: two, Budget: all, Keyed: true},
		{Name: "mysql insert, stamp", Callers: two, Budget: cuts, Stamp: true},
		{Name: "mysql insert of a row that is there", Callers: two, Budget: deaf, Row: 1},
		{Name: "mysql insert, conflict swallowed", Callers: two, Budget: runs, Swallow: true},
		{Name: "postgres update of a version, conflict swallowed", Callers: two, Budget: runs, Swallow: true, Postgres: true, Update: true, Row: 1, Brought: true},
		{Name: "mysql update", Callers: two, Budget: cuts, Update: true, Row: 1},
		{Name: "mysql update, stamp", Callers: two, Budget: all, Update: true, Row: 1, Stamp: true},
		{Name: "mysql update of a version", Callers: two, Budget: runs, Update: true, Row: 1, Brought: true},
		{Name: "mysql update of an old version", Callers: two, Budget: deaf, Update: true, Row: 2, Brought: true},
		{Name: "postgres insert", Callers: two, Budget: all, Postgres: true},
		{Name: "postgres update", Callers: two, Budget: all, Postgres: true, Update: true, Row: 1},
		{Name: "postgres update of a version", Callers: two, Budget: runs, Postgres: true, Update: true, Row: 1, Brought: true},

		{Name: "mysql insert, handed over once", Callers: three, Budget: Budget{Lose: 1, Kill: 1}},
		{Name: "mysql insert, handed over", Long: true, Callers: three, Budget: all, Faults: 2},
		{Name: "mysql update, stamp, handed over", Long: true, Callers: three, Budget: all, Faults: 2, Update: true, Row: 1, Stamp: true},
		{Name: "postgres update, handed over", Long: true, Callers: three, Budget: all, Faults: 2, Postgres: true, Update: true, Row: 1},

		{Name: "mysql insert, stranger", Callers: two, Budget: stranger},
		{Name: "mysql insert, generated key, stranger deletes", Callers: two, Keyed: true, Budget: Budget{Lose: 1, Cut: 1, Delete: 1}},
		{Name: "mysql update, stamp, stranger deletes", Callers: two, Update: true, Row: 1, Stamp: true, Budget: Budget{Lose: 1, Cut: 1, Delete: 1}},
		{Name: "postgres insert, stranger deletes", Callers: two, Postgres: true, Budget: Budget{Lose: 1, Cut: 1, Delete: 1}},
		{Name: "mysql update, stamp, stranger", Callers: two, Budget: stranger, Update: true, Row: 1, Stamp: true, Long: true},
		{Name: "mysql update, stranger replaces", Callers: two, Budget: Budget{Lose: 1, Replace: 1}, Update: true, Row: 1},
		{Name: "postgres insert, stranger", Callers: two, Budget: stranger, Postgres: true},
		{Name: "postgres update, stranger", Callers: two, Budget: stranger, Postgres: true, Update: true, Row: 1, Long: true},
		{Name: "mysql insert, isolation changed", Callers: two, Budget: Budget{Lose: 1, Write: 1, Deadlock: 1}, Changed: true},
		{Name: "postgres insert after raw SQL", Callers: two, Budget: Budget{Lose: 1, Write: 1, Deadlock: 1}, Postgres: true, RawSQL: true},

		{Name: "mysql insert, generated key, crash", Callers: two, Budget: crash, Keyed: true},
		{Name: "mysql update, stamp, crash", Callers: two, Budget: crash, Update: true, Row: 1, Stamp: true},
		{Name: "postgres update, crash", Callers: two, Budget: crash, Postgres: true, Update: true, Row: 1},

		{Name: "mysql request", Callers: two, Serves: ByOnce, Stamp: true, Budget: all, Faults: 3},
		{Name: "mysql request, no answer", Callers: two, Serves: ByFor, Retries: 1, Stamp: true, Budget: all, Faults: 2},
		{Name: "mysql request, row of another", Callers: two, Serves: ByOnce, Stamp: true, Marks: true, Budget: Budget{Lose: 1, Cut: 1, Kill: 1, Meet: 1}, Faults: 3},
		{Name: "mysql request, marks", Callers: two, Serves: ByOnce, Stamp: true, Marks: true, Budget: Budget{Lose: 1, Cut: 1, Kill: 1, Purge: 1, Restore: 1}, Faults: 3},
		{Name: "mysql request, purged", Callers: two, Serves: ByOnce, Stamp: true, Budget: Budget{Lose: 1, Deadlock: 1, Kill: 1, Purge: 1}, Faults: 2},
		{Name: "postgres request, purged", Callers: two, Serves: ByOnce, Stamp: true, Postgres: true, Budget: Budget{Lose: 1, Deadlock: 1, Kill: 1, Purge: 1}, Faults: 2},
		{Name: "mysql request, refused", Callers: two, Serves: Declined, Stamp: true, Budget: Budget{Lose: 1, Lapse: 1, Cut: 1, Deadlock: 1, Kill: 1}, Faults: 3},
		{Name: "mysql request, handed over", Callers: three, Serves: ByOnce, Stamp: true, Budget: Budget{Lose: 1, Cut: 1, Kill: 1}, Faults: 2, Long: true},
		{Name: "mysql request, another key", Callers: two, Serves: ByOnce, Stamp: true, Apart: true, Budget: Budget{Lose: 1, Lapse: 1, Cut: 1, Deadlock: 1, Kill: 1}, Faults: 3},
		{Name: "mysql request, crash", Callers: two, Serves: ByOnce, Stamp: true, Budget: crash},
		{Name: "postgres request", Callers: two, Serves: ByOnce, Stamp: true, Postgres: true, Budget: all, Faults: 3},

		{Name: "mysql update, stamp, crew", Long: true, Callers: three, Crew: true, Update: true, Row: 1, Stamp: true, Budget: Budget{Lose: 1, Cut: 1, Deadlock: 1, Kill: 1, Fail: 1}, Faults: 2},
		{Name: "postgres update, crew", Long: true, Callers: three, Crew: true, Postgres: true, Update: true, Row: 1, Budget: Budget{Lose: 1, Mute: 1, Cut: 1}, Faults: 2},
		{Name: "postgres update, crew, broken", Callers: three, Crew: true, Postgres: true, Update: true, Row: 1, Budget: Budget{Cut: 1}},
		{Name: "mysql update, crew", Callers: three, Crew: true, Update: true, Row: 1, Budget: Budget{Lose: 1, Fail: 1}},
		{Name: "mysql insert, crew of twins", Callers: three, Crew: true, Budget: Budget{Lose: 1, Deadlock: 1, Kill: 1}, Faults: 1},

		{Name: "two transfers", Callers: two, Keys: [processes]uint8{3, 3}, Budget: Budget{Lose: 2, Cut: 1, Kill: 1}},
		{Name: "two transfers, nobody waits", Callers: two, Keys: [processes]uint8{3, 3}, Refuse: true, Budget: Budget{Lose: 2, Kill: 1}},
		{Name: "two transfers in opposite directions", Callers: two, Keys: [processes]uint8{3, 3}, Swapped: true, Budget: Budget{Lose: 2, Cut: 1, Deadlock: 1}, Faults: 2},
		{Name: "postgres, two transfers in opposite directions", Callers: two, Keys: [processes]uint8{3, 3}, Swapped: true, Postgres: true, Budget: Budget{Lose: 2, Cut: 1}, Faults: 2},
		{Name: "transfer, and a caller of its second key", Callers: two, Keys: [processes]uint8{3, 2}, Budget: Budget{Lose: 2, Cut: 1, Kill: 1}},
		{Name: "transfer, and a caller of its first key", Callers: two, Keys: [processes]uint8{3, 1}, Budget: Budget{Lose: 2, Cut: 1, Kill: 1}},

		{Name: "mysql update, two keys", Callers: two, Update: true, Row: 1, Shared: true, Budget: Budget{Lose: 1, Mute: 1, Kill: 1}},
		{Name: "postgres update, two keys", Callers: two, Postgres: true, Update: true, Row: 1, Shared: true, Budget: stranger, Faults: 3},
		{Name: "mysql insert, two keys", Callers: two, Shared: true, Budget: stranger, Faults: 3},
		{Name: "mysql update, crew, silent database", Callers: three, Crew: true, Update: true, Row: 1, Budget: Budget{Lose: 1, Hang: 1}},
		{Name: "short of time", Callers: three, Budget: Budget{Short: 1, Lose: 1, Mute: 1}, Faults: 2},
		{Name: "late acquire, nobody waits", Callers: three, Refuse: true, Budget: Budget{Late: 1, Lose: 1, Mute: 1, Kill: 1}},
		{Name: "late acquire", Callers: three, Budget: Budget{Late: 1, Lose: 1, Mute: 1}, Faults: 2},
		{Name: "DBOnly insert", Callers: two, DBOnly: true, Budget: Budget{Outage: 1, Lose: 1, Cut: 1, Kill: 1}},
		{Name: "DBOnly update, stamp", Long: true, Callers: two, DBOnly: true, Update: true, Row: 1, Stamp: true, Budget: Budget{Outage: 1, Lose: 1, Cut: 1}},
		{Name: "DBOnly insert, queue", Long: true, Callers: three, DBOnly: true, Budget: Budget{Outage: 1}},
		{Name: "way of the events", Path: true, Budget: Budget{Kill: 1, Mute: 1, Crash: 1}},
	}
}
