package chaos_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"maps"
	"net"
	"os"
	"slices"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A database is a kind of database that the test can run on.
type database struct {
	shared    func(testing.TB) string // the DSN of one on the server that all tests share
	open      func(testing.TB, string, ...gorm.Option) *gorm.DB
	connector func(dsn string, dial dialer) (driver.Connector, error)
	dialector func(*sql.DB) gorm.Dialector

	begins   string // the verb by which attempts begin: on MySQL and MariaDB, Belay's own reads by BEGIN
	sessions string // selects the ids of a user's sessions, those that run a statement if there are any
	kill     string // ends the session with an id
	self     string // selects the id of the own session and a number of its server
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

var databases = map[string]database{
	// Nodes of Galera have one id and one port.
	"mariadb":  mysqlWith(teststack.MySQL, "CRC32(CONCAT_WS(' ', @@server_id, @@port, @@wsrep_node_name))"),
	"mysql":    mysqlWith(teststack.MySQL9, "@@server_id * 100000 + @@port"),
	"mysql80":  mysqlWith(teststack.MySQL80, "@@server_id * 100000 + @@port"),
	"postgres": postgresDatabase,
}

// databaseName is the variable that names the database or the bed, in workers as well.
const databaseName = "BELAY_CHAOS_ON"

// chosen returns the name of the database to run on. Default: mariadb.
func chosen() string { return cmp.Or(os.Getenv(databaseName), "mariadb") }

// kindOf returns the kind of the database of that name, or of the nodes of the bed.
func kindOf(name string) string {
	if b, ok := beds[name]; ok {
		return b.kind
	}
	return name
}

// databaseOf returns that kind, as it is behind a bed's front.
func databaseOf(name string) database {
	d := databases[kindOf(name)]
	d.self, d.kill = cmp.Or(beds[name].self, d.self), cmp.Or(beds[name].kill, d.kill)
	return d
}

// A server is the database of a run.
type server struct {
	database

	name string
	dsn  string              // by which the test comes
	dsns []string            // by which workers come, in turn
	own  *teststack.Database // of this run only, so that it may be killed; or nil
	bed  *standing           // likewise; or nil
}

// startServer returns the database that was chosen, on a server of its own or not. A bed is
// always one of its own.
func startServer(t *report, own bool) *server {
	s := &server{database: databaseOf(chosen()), name: chosen()}
	b, isBed := beds[s.name]
	switch {
	case s.open == nil:
		t.Fatalf("%s=%s is none of %v", databaseName, s.name, slices.Concat(slices.Sorted(maps.Keys(databases)), slices.Sorted(maps.Keys(beds))))
	case isBed:
		s.bed = b.start(t, s.name)
		s.dsn, s.dsns = s.bed.dsns[0], s.bed.dsns
		return s
	case own:
		s.own = teststack.StartDatabase(t, "chaos-"+s.name, s.name)
		s.dsn = s.own.DSN
	default:
		s.dsn = s.shared(t)
	}
	s.dsns = []string{s.dsn}
	return s
}

// mysqlWith returns a database whose server is known by a number.
func mysqlWith(shared func(testing.TB) string, number string) database {
	return database{
		shared: shared,
		open:   testdb.OpenMySQL,
		connector: func(dsn string, dial dialer) (driver.Connector, error) {
			config, err := mysqldriver.ParseDSN(dsn)
			if err != nil {
				return nil, err
			}
			config.Logger = &mysqldriver.NopLogger{} // or it would report each connection that was cut
			config.DialFunc = dial
			return mysqldriver.NewConnector(config)
		},
		dialector: func(pool *sql.DB) gorm.Dialector { return mysql.New(mysql.Config{Conn: pool}) },
		begins:    "START",
		sessions: `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND user = @user AND id <> CONNECTION_ID()
			AND (command <> 'Sleep' OR NOT EXISTS (SELECT 1 FROM information_schema.processlist
				WHERE db = DATABASE() AND user = @user AND id <> CONNECTION_ID() AND command <> 'Sleep'))`,
		kill: "KILL %d",
		self: "SELECT CONNECTION_ID(), " + number,
	}
}

var postgresDatabase = database{
	shared: teststack.Postgres,
	open:   testdb.OpenPostgres,
	connector: func(dsn string, dial dialer) (driver.Connector, error) {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		config.DialFunc = pgconn.DialFunc(dial)
		return stdlib.GetConnector(*config), nil
	},
	dialector: func(pool *sql.DB) gorm.Dialector { return postgres.New(postgres.Config{Conn: pool}) },
	begins:    "BEGIN",
	sessions: `WITH others AS (SELECT pid, state FROM pg_stat_activity
			WHERE datname = current_database() AND usename = @user AND pid <> pg_backend_pid() AND backend_type = 'client backend')
		SELECT pid FROM others WHERE state = 'active' OR NOT EXISTS (SELECT 1 FROM others WHERE state = 'active')`,
	kill: "SELECT pg_terminate_backend(%d)",
	self: "SELECT pg_backend_pid(), inet_server_port()",
}
