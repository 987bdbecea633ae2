package chaos_test

import "github.com/belaygo/belay/internal/teststack"

// galeraBed has three nodes that all take writes.
var galeraBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"galera"}, Network: true, Disk: "2500m"},

	kind:   "mariadb",
	nodes:  []string{"galera-1", "galera-2", "galera-3"},
	dsns:   "BELAY_GALERA_DSNS",
	params: "&wsrep_sync_wait=1",
	spread: true,
	writes: `SELECT COUNT(*) = 2 AND @@GLOBAL.read_only = 0 FROM information_schema.global_status
		WHERE (variable_name, variable_value) IN (('WSREP_READY', 'ON'), ('WSREP_CLUSTER_STATUS', 'Primary'))`,
	users: []string{"CREATE USER service IDENTIFIED BY 'service'", "GRANT ALL PRIVILEGES ON belay.* TO service"},
	deck:  []faultKind{nodeKilled, twoKilled, allKilled, nodePaused, nodePaused, nodeCut, nodeCut, readOnly, storm, slowDisk, fullDisk},
}

// behindBed is the same with wsrep_sync_wait as it is by default: a node may lack what the
// last holder of a lock has committed on another.
var behindBed = func() bed {
	b := galeraBed
	b.params, b.behind, b.deck = "", true, []faultKind{nodeKilled, nodePaused, nodeCut, allKilled}
	return b
}()
