package chaos_test

import "github.com/belaygo/belay/internal/teststack"

// semisyncBed is a MariaDB and its semi-synchronous replica, which is promoted. A plain KILL of a
// session that waits for the replica would commit its whole group on the primary alone.
var semisyncBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"semisync"}, Network: true, Disk: "1500m"},

	kind:     "mariadb",
	nodes:    []string{"semisync-1", "semisync-2"},
	dsns:     "BELAY_SEMISYNC_DSNS",
	operator: "operator",
	kill:     "KILL SOFT %d",
	writes:   "SELECT @@GLOBAL.read_only = 0",
	deck:     []faultKind{promotion, promotion, pausedWriter, cutWriter, switchOver, nodeKilled, nodePaused, nodeCut, allKilled, readOnly, storm, slowDisk, fullDisk},
}
