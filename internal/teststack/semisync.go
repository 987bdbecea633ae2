package teststack

import "testing"

// SemiSync brings up a MariaDB with a semi-synchronous replica. Both have the same host name
// and port. It is an extra server, as in [MySQL9].
func SemiSync(tb testing.TB, name string) *Pair {
	tb.Helper()
	return newPair(tb, name, "semisync", "BELAY_SEMISYNC_DSNS")
}
