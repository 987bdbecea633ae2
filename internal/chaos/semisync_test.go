package chaos_test

// semisyncBed is a MariaDB and its semi-synchronous replica, which is promoted.
var semisyncBed = bed{
	kind:    "mariadb",
	servers: []string{"semisync"},
	nodes:   []string{"semisync-1", "semisync-2"},
	dsns:    "BELAY_SEMISYNC_DSNS",
	writes:  "SELECT @@GLOBAL.read_only = 0",
	deck:    []faultKind{promotion, promotion, pausedWriter, switchOver, nodeKilled, nodePaused, allKilled, storm, slowDisk},
}
