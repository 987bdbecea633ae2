package chaos_test

import "github.com/belaygo/belay/internal/teststack"

// standbyBed is a PostgreSQL and its synchronous standby, which is promoted.
var standbyBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"standby"}, Network: true, Disk: "1500m"},

	kind:   "postgres",
	nodes:  []string{"standby-1", "standby-2"},
	dsns:   "BELAY_STANDBY_DSNS",
	writes: "SELECT NOT pg_is_in_recovery()",
	users:  []string{"CREATE ROLE service LOGIN PASSWORD 'service'", "GRANT ALL ON SCHEMA public TO service"},
	deck:   []faultKind{promotion, pausedWriter, cutWriter, nodeKilled, nodePaused, nodeCut, allKilled, readOnly, storm, slowDisk, fullDisk},
}
