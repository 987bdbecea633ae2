package chaos_test

import "github.com/belaygo/belay/internal/teststack"

// semisyncBed is a MariaDB and its semi-synchronous replica, which is promoted.
var semisyncBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"semisync"}, Network: true, Disk: "1500m"},

	kind:     "mariadb",
	nodes:    []string{"semisync-1", "semisync-2"},
	dsns:     "BELAY_SEMISYNC_DSNS",
	operator: "operator",
	writes:   "SELECT @@GLOBAL.read_only = 0",
	deck:     []faultKind{promotion, promotion, pausedWriter, cutWriter, switchOver, nodeKilled, nodePaused, nodeCut, allKilled, readOnly, storm, slowDisk, fullDisk},
}
