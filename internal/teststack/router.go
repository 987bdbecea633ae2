package teststack

import "testing"

// Router returns the DSNs of an empty database on a real MySQL, as [MySQL9] does, and of the
// same through MySQL Router, which shares the server's sessions between its clients. It is an
// extra server, as in [MySQL9].
func Router(tb testing.TB) (direct, shared string) {
	tb.Helper()
	const name = "BELAY_ROUTER_DSN"
	router := parseDSN(tb, name, extra(tb, name, "router"))
	direct = MySQL9(tb)
	router.DBName = parseDSN(tb, "BELAY_MYSQL9_DSN", direct).DBName
	return direct, router.FormatDSN()
}
