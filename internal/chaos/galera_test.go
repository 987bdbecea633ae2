package chaos_test

// galeraBed has three nodes that all take writes.
var galeraBed = bed{
	kind:    "mariadb",
	servers: []string{"galera"},
	nodes:   []string{"galera-1", "galera-2", "galera-3"},
	dsns:    "BELAY_GALERA_DSNS",
	params:  "&wsrep_sync_wait=1",
	spread:  true,
	network: true,
	writes: `SELECT COUNT(*) = 2 AND @@GLOBAL.read_only = 0 FROM information_schema.global_status
		WHERE (variable_name, variable_value) IN (('WSREP_READY', 'ON'), ('WSREP_CLUSTER_STATUS', 'Primary'))`,
	users: []string{"CREATE USER service IDENTIFIED BY 'service'", "GRANT ALL PRIVILEGES ON belay.* TO service"},
	deck:  []faultKind{nodeKilled, twoKilled, allKilled, nodePaused, nodePaused, nodeCut, nodeCut, readOnly, storm, slowDisk},
}
