package teststack

import (
	"context"
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MySQL returns the DSN of an empty database made for this test. It is dropped
// when the test ends, so close what uses it in a Cleanup of the test's own.
func MySQL(tb testing.TB) string {
	tb.Helper()
	config, err := mysql.ParseDSN(setting(tb, "BELAY_MYSQL_DSN"))
	if err != nil {
		tb.Fatalf("BELAY_MYSQL_DSN: %v", err)
	}

	config.DBName = "belay_" + randomName()
	execute(tb, config, "CREATE DATABASE "+config.DBName)
	tb.Cleanup(func() { execute(tb, config, "DROP DATABASE "+config.DBName) })
	return config.FormatDSN()
}

// execute runs one statement on a connection that has no database selected. It
// does not wait long for the locks of a transaction that a test left open.
func execute(tb testing.TB, config *mysql.Config, statement string) {
	tb.Helper()
	config = config.Clone()
	config.DBName = ""
	config.Params = map[string]string{"lock_wait_timeout": "5"}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		tb.Fatalf("BELAY_MYSQL_DSN: %v", err)
	}

	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}
