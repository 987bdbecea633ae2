package teststack

import (
	"context"
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MySQL returns the DSN of an empty database made for this test, on the server
// that stands for MySQL: MariaDB, unless scripts/test runs on another.
// It is dropped when the test ends, so close what uses it in a Cleanup of the
// test's own.
func MySQL(tb testing.TB) string {
	tb.Helper()
	return newMySQL(tb, "BELAY_MYSQL_DSN", setting(tb, "BELAY_MYSQL_DSN"))
}

// MySQL9 is [MySQL] on a real MySQL. It is an extra server: where it is not up,
// the test is skipped.
func MySQL9(tb testing.TB) string {
	tb.Helper()
	return newMySQL(tb, "BELAY_MYSQL9_DSN", extra(tb, "BELAY_MYSQL9_DSN", "mysql"))
}

// MySQL80 is [MySQL] on a MySQL 8.0. It is an extra server, as in [MySQL9].
func MySQL80(tb testing.TB) string {
	tb.Helper()
	return newMySQL(tb, "BELAY_MYSQL80_DSN", extra(tb, "BELAY_MYSQL80_DSN", "mysql80"))
}

// MariaDB11 is [MySQL] on a MariaDB 11, which has innodb_snapshot_isolation on.
// It is an extra server, as in [MySQL9].
func MariaDB11(tb testing.TB) string {
	tb.Helper()
	return newMySQL(tb, "BELAY_MARIADB11_DSN", extra(tb, "BELAY_MARIADB11_DSN", "mariadb11"))
}

func newMySQL(tb testing.TB, name, dsn string) string {
	tb.Helper()
	config := parseDSN(tb, name, dsn)
	config.DBName = "belay_" + randomName()
	execute(tb, config, "CREATE DATABASE "+config.DBName)
	tb.Cleanup(func() { execute(tb, config, "DROP DATABASE "+config.DBName) })
	return config.FormatDSN()
}

// parseDSN parses the DSN in the variable name.
func parseDSN(tb testing.TB, name, dsn string) *mysql.Config {
	tb.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return config
}

// execute runs one statement on a connection that has no database selected. It
// does not wait long for the locks of a transaction that a test left open.
func execute(tb testing.TB, config *mysql.Config, statement string) {
	tb.Helper()
	config = config.Clone()
	config.DBName = ""
	config.Params = map[string]string{"lock_wait_timeout": "30"} // a server may notice only after 5 s that a client is gone
	connector, err := mysql.NewConnector(config)
	if err != nil {
		tb.Fatalf("connect to %s: %v", config.Addr, err)
	}

	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}
