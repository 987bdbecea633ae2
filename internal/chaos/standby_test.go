package chaos_test

// standbyBed is a PostgreSQL and its synchronous standby, which is promoted.
var standbyBed = bed{
	kind:    "postgres",
	servers: []string{"standby"},
	nodes:   []string{"standby-1", "standby-2"},
	dsns:    "BELAY_STANDBY_DSNS",
	writes:  "SELECT NOT pg_is_in_recovery()",
	users:   []string{"CREATE ROLE service LOGIN PASSWORD 'service'", "GRANT ALL ON SCHEMA public TO service"},
	deck:    []faultKind{promotion, promotion, pausedWriter, nodeKilled, nodePaused, allKilled, storm},
}
