package chaos_test

import "github.com/belaygo/belay/internal/teststack"

// pgbouncerBed is a PostgreSQL behind a pooler in transaction mode, which is the front: a
// worker's connection has another session in each transaction, and one that is ended is
// anybody's.
var pgbouncerBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"postgres", "pgbouncer"}, Env: []string{"BELAY_PGBOUNCER_POOL=12"}, Network: true},

	kind:   "postgres",
	nodes:  []string{"postgres"},
	dsns:   "BELAY_POSTGRES_DSN",
	pooler: "BELAY_PGBOUNCER_DSN",
	params: "&default_query_exec_mode=simple_protocol",
	writes: "SELECT NOT pg_is_in_recovery()",
	self:   "SELECT 0, 1",
	deck:   []faultKind{poolerKilled, poolerKilled, poolerPaused, allKilled, nodeCut, storm},
}
