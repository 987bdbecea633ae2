package chaos_test

import (
	"slices"
	"time"

	"github.com/belaygo/belay/internal/teststack"
)

// groupBed has three members of MySQL's group replication, of which one takes writes. Another
// is elected when that one is gone.
var groupBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"group"}, Network: true, Disk: "3000m"},

	kind:   "mysql",
	nodes:  []string{"group-1", "group-2", "group-3"},
	dsns:   "BELAY_GROUP_DSNS",
	params: "&group_replication_consistency=%27BEFORE%27",
	writes: `SELECT @@GLOBAL.read_only = 0 AND @@GLOBAL.offline_mode = 0 AND 2 * SUM(member_state <> 'UNREACHABLE') > COUNT(*)
		AND SUM(member_id = @@server_uuid AND member_state = 'ONLINE' AND member_role = 'PRIMARY') = 1
		FROM performance_schema.replication_group_members`,
	users: []string{
		"CREATE USER service IDENTIFIED BY 'service'", "GRANT ALL PRIVILEGES ON belay.* TO service",
		"GRANT SELECT ON performance_schema.replication_group_members TO service",
		"GRANT SELECT ON performance_schema.replication_group_member_stats TO service",
	},
	notices: 7 * time.Second,
	deck:    []faultKind{nodeKilled, twoKilled, allKilled, nodePaused, nodeCut, nodeCut, readOnly, storm, slowDisk, fullDisk},
}

// multiBed is the same, and all take writes.
var multiBed = func() bed {
	b := groupBed
	b.Env, b.spread, b.deck = []string{"BELAY_GROUP_MODE=multi"}, true, slices.Clone(b.deck)
	return b
}()
