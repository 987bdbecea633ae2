package teststack

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Postgres returns the URL of an empty PostgreSQL database made for this test.
// It is dropped when the test ends, and what is still connected is cut off.
// PostgreSQL is an extra server: where it is not up, the test is skipped.
func Postgres(tb testing.TB) string {
	tb.Helper()
	server := extra(tb, "BELAY_POSTGRES_DSN", "postgres")
	dsn, err := url.Parse(server)
	if err != nil {
		tb.Fatal("BELAY_POSTGRES_DSN is not a URL")
	}

	name := "belay_" + randomName()
	executePostgres(tb, server, "CREATE DATABASE "+name)
	tb.Cleanup(func() { executePostgres(tb, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	dsn.Path = "/" + name
	return dsn.String()
}

// StartPostgres brings up a PostgreSQL of the test's own, whose settings it may
// change, and returns the URL of its database. It has it stopped when the test ends.
// Like [Postgres] it is skipped where that server is not up.
func StartPostgres(tb testing.TB, name string) string {
	tb.Helper()
	return StartDatabase(tb, name, "postgres").DSN
}

func executePostgres(tb testing.TB, server, statement string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		tb.Fatalf("connect to postgres: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}
