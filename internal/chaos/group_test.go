package chaos_test

import (
	"slices"

	"github.com/belaygo/belay/internal/teststack"
)

// groupBed has three members of MySQL's group replication, of which one takes writes. Another
// is elected when that one is gone.
var groupBed = bed{
	BedConfig: teststack.BedConfig{Servers: []string{"group"}},

	kind:   "mysql",
	nodes:  []string{"group-1", "group-2", "group-3"},
	dsns:   "BELAY_GROUP_DSNS",
	params: "&group_replication_consistency=%27BEFORE%27",
	writes: `SELECT COUNT(*) = 1 AND @@GLOBAL.super_read_only = 0 FROM performance_schema.replication_group_members
		WHERE member_id = @@server_uuid AND member_state = 'ONLINE' AND member_role = 'PRIMARY'`,
	users: []string{
		"CREATE USER service IDENTIFIED BY 'service'", "GRANT ALL PRIVILEGES ON belay.* TO service",
		"GRANT SELECT ON performance_schema.replication_group_members TO service",
		"GRANT SELECT ON performance_schema.replication_group_member_stats TO service",
	},
	deck: []faultKind{nodeKilled, nodeKilled, twoKilled, allKilled, nodePaused, nodePaused, storm},
}

// multiBed is the same, and all take writes.
var multiBed = func() bed {
	b := groupBed
	b.Env, b.spread, b.deck = []string{"BELAY_GROUP_MODE=multi"}, true, slices.Clone(b.deck)
	return b
}()
