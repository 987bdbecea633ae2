package chaos_test

import (
	"database/sql"
	"database/sql/driver"
	"os"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A database is a kind of database that the test can run on.
type database struct {
	dsn       func(testing.TB) string
	open      func(testing.TB, string, ...gorm.Option) *gorm.DB
	connector func(dsn string) (driver.Connector, error)
	dialector func(*sql.DB) gorm.Dialector

	session string // selects the id of another session, one that runs a statement if there is any
	kill    string // ends the session with an id
}

var databases = map[string]database{
	"mariadb":  mysqlWith(teststack.MySQL),
	"mysql":    mysqlWith(teststack.MySQL9),
	"postgres": postgresDatabase,
}

// databaseName is the variable that names the database, in workers as well.
const databaseName = "BELAY_CHAOS_ON"

// chosen returns the name of the database to run on. Default: mariadb.
func chosen() string {
	if name := os.Getenv(databaseName); name != "" {
		return name
	}
	return "mariadb"
}

func mysqlWith(dsn func(testing.TB) string) database {
	return database{
		dsn:  dsn,
		open: testdb.OpenMySQL,
		connector: func(dsn string) (driver.Connector, error) {
			config, err := mysqldriver.ParseDSN(dsn)
			if err != nil {
				return nil, err
			}
			config.Logger = &mysqldriver.NopLogger{} // or it would report each connection that was cut
			return mysqldriver.NewConnector(config)
		},
		dialector: func(pool *sql.DB) gorm.Dialector { return mysql.New(mysql.Config{Conn: pool}) },
		session: `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()
			ORDER BY command = 'Sleep', RAND() LIMIT 1`,
		kill: "KILL %d",
	}
}

var postgresDatabase = database{
	dsn:  teststack.Postgres,
	open: testdb.OpenPostgres,
	connector: func(dsn string) (driver.Connector, error) {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		return stdlib.GetConnector(*config), nil
	},
	dialector: func(pool *sql.DB) gorm.Dialector { return postgres.New(postgres.Config{Conn: pool}) },
	session: `SELECT pid FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
		ORDER BY state <> 'active', random() LIMIT 1`,
	kill: "SELECT pg_terminate_backend(%d)",
}
