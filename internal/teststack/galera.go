package teststack

import (
	"strings"
	"testing"
)

// Galera returns the DSNs of an empty database on each of the three nodes of a cluster. It
// is an extra server, as in [MySQL9].
func Galera(tb testing.TB) []string {
	tb.Helper()
	const name = "BELAY_GALERA_DSNS"
	nodes := strings.Fields(extra(tb, name, "galera"))
	first := newMySQL(tb, name, nodes[0])
	made := parseDSN(tb, name, first).DBName
	for i, dsn := range nodes {
		config := parseDSN(tb, name, dsn)
		execute(tb, config, "SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1") // until the database is there
		config.DBName = made
		nodes[i] = config.FormatDSN()
	}
	return nodes
}
