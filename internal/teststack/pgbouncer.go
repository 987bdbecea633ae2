package teststack

import (
	"net/url"
	"testing"
)

// PgBouncer returns the URLs of an empty PostgreSQL database, as [Postgres] does, and of the
// same through PgBouncer in transaction mode. Prepared statements do not work there. It is
// an extra server, as in [Postgres].
func PgBouncer(tb testing.TB) (direct, pooled string) {
	tb.Helper()
	pooler, err := url.Parse(extra(tb, "BELAY_PGBOUNCER_DSN", "pgbouncer"))
	if err != nil {
		tb.Fatal("BELAY_PGBOUNCER_DSN is not a URL")
	}
	direct = Postgres(tb)
	database, err := url.Parse(direct)
	if err != nil {
		tb.Fatal(err)
	}
	pooler.Path = database.Path
	query := pooler.Query()
	query.Set("default_query_exec_mode", "simple_protocol")
	pooler.RawQuery = query.Encode()
	return direct, pooler.String()
}
