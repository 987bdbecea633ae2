package teststack

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Postgres returns the URL of an empty PostgreSQL database of this test's own. Nobody
// reaches it by that URL after the test, and what is still connected is cut off.
// PostgreSQL is an extra server: where it is not up, the test is skipped.
//
// To create and drop a database costs a quarter of a second of a processor, more than most
// tests take. So a database that can be emptied is kept on the server, under a name of
// another kind, for the next test to rename.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return newPostgres(tb, "BELAY_POSTGRES_DSN", "postgres")
}

// Postgres18 is [Postgres] on a PostgreSQL 18.
func Postgres18(tb testing.TB) string {
	tb.Helper()
	return newPostgres(tb, "BELAY_POSTGRES18_DSN", "postgres18")
}

func newPostgres(tb testing.TB, variable, of string) string {
	tb.Helper()
	server := extra(tb, variable, of)
	dsn, err := url.Parse(server)
	if err != nil {
		tb.Fatalf("%s is not a URL", variable)
	}

	name := "belay_" + randomName()
	dsn.Path = "/" + name
	onPostgres(tb, server, func(ctx context.Context, conn *pgx.Conn) error {
		return takeDatabase(ctx, conn, name)
	})
	tb.Cleanup(func() {
		onPostgres(tb, server, func(ctx context.Context, conn *pgx.Conn) error {
			return leaveDatabase(ctx, conn, name, dsn.String())
		})
	})
	return dsn.String()
}

// StartPostgres brings up a PostgreSQL of the test's own, whose settings it may
// change, and returns the URL of its database. It has it stopped when the test ends.
// Like [Postgres] it is skipped where that server is not up.
func StartPostgres(tb testing.TB, name string) string {
	tb.Helper()
	return StartDatabase(tb, name, "postgres").DSN
}

// onPostgres runs f on a connection to the server.
func onPostgres(tb testing.TB, server string, f func(context.Context, *pgx.Conn) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		tb.Fatalf("connect to postgres: %v", err)
	}
	defer conn.Close(ctx)
	if err := f(ctx, conn); err != nil {
		tb.Fatal(err)
	}
}
