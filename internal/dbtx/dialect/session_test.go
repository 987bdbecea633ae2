package dialect

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/sqlerr"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestForeignSessionIsLeftAlone: the user of the pool has changed, and may neither see nor end
// sessions of the former one. Its rows are locked while it has the transaction.
func TestForeignSessionIsLeftAlone(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "mysql9": teststack.MySQL9} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			config, err := mysql.ParseDSN(dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			old := connectionOf(t, config)
			admin := connectionOf(t, config)
			d, _ := Of("mysql")
			s, err := d.ReadSession(ctx, old)
			if err != nil {
				t.Fatal(err)
			}
			config.User, config.Passwd, config.DBName = "new_"+strings.ToLower(rand.Text()[:8]), rand.Text(), ""
			if _, err := admin.ExecContext(ctx, fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", config.User, config.Passwd)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = admin.ExecContext(ctx, "DROP USER "+config.User) })
			other := connectionOf(t, config)

			s.Begun, s.Sent = time.Now(), time.Now()
			if err := d.EndSession(ctx, other, s); err != nil {
				t.Error(err)
			}
			if err := old.PingContext(ctx); err != nil {
				t.Errorf("it was ended: %v", err)
			}
		})
	}
}

// TestSessionBehindAPooler: a pooler may give the one who looks for the outcome an older
// session than the one that is to be ended. It is ended all the same, also if the server is
// so young that its seconds say nothing.
func TestSessionBehindAPooler(t *testing.T) {
	ctx := context.Background()
	config, err := mysql.ParseDSN(teststack.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	older, old := connectionOf(t, config), connectionOf(t, config)
	d, _ := Of("mysql")
	s, err := d.ReadSession(ctx, old)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var seconds int64
	if err := older.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'").Scan(&name, &seconds); err != nil {
		t.Fatal(err)
	}
	s.Read = time.Now().Add(-time.Duration(seconds) * time.Second)
	s.Begun, s.Sent = time.Now(), time.Now()
	if restarted, err := d.Restarted(ctx, older, s, s); restarted || err != nil {
		t.Fatalf("restarted: %t, %v", restarted, err)
	}
	if err := d.EndSession(ctx, older, s); err != nil {
		t.Fatal(err)
	}
	if old.PingContext(ctx) == nil {
		t.Error("the session lives")
	}
}

// TestMovedConnectionIsNoticed: a pooler gives the transactions of one connection to different
// sessions. The number is asked again once a minute.
func TestMovedConnectionIsNoticed(t *testing.T) {
	ctx := context.Background()
	config, err := mysql.ParseDSN(teststack.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := connectionOf(t, config)
	d, _ := Of("mysql")
	number, asked := uint64(7), 0
	d.ReadSession = func(context.Context, *sql.Conn) (Session, error) {
		asked++
		return Session{ID: number, Read: time.Now().Add(-time.Hour)}, nil
	}
	var s Sessions
	for _, now := range []uint64{7, 7, 8} {
		number = now
		if _, err := s.Of(ctx, new(sql.DB), c, d); err != nil {
			t.Fatal(err)
		}
		if moved := now != 7; s.Moved() != moved {
			t.Errorf("in session %d: moved %t", now, s.Moved())
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// TestServerInNoGroup: a server without group replication has the levels of a group, too, and
// that of MySQL 8.0 is EVENTUAL. There is no other member whose commits it may lack.
func TestServerInNoGroup(t *testing.T) {
	config, err := mysql.ParseDSN(teststack.MySQL9(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Params = map[string]string{"group_replication_consistency": "'EVENTUAL'"}
	d, _ := Of("mysql")
	s, err := d.ReadSession(context.Background(), connectionOf(t, config))
	if err != nil {
		t.Fatal(err)
	}
	if s.Group || s.Behind || s.Yields {
		t.Errorf("in a group %t, behind others %t, undone in favour of others %t", s.Group, s.Behind, s.Yields)
	}
}

// TestCatchUpOfPercona: a Galera cluster of MySQL's takes no setting for one statement: what it is
// sent is MySQL's syntax. The session has its own setting again afterwards.
func TestCatchUpOfPercona(t *testing.T) {
	d, _ := Of("mysql")
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "mysql9": teststack.MySQL9} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			config, err := mysql.ParseDSN(dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			c := connectionOf(t, config)
			s, err := d.ReadSession(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			s.Galera, s.Family = true, MySQL
			_, unknown := c.ExecContext(ctx, "SET SESSION wsrep_sync_wait = 6")
			err = d.CatchUp(ctx, c, s)
			if unknown != nil { // the server knows no Galera
				if err == nil || IsSyntax(err) {
					t.Errorf("it does not understand: %v", err)
				}
				return
			}
			var left int
			if err := errors.Join(err, c.QueryRowContext(ctx, "SELECT @@SESSION.wsrep_sync_wait").Scan(&left)); err != nil || left != 6 {
				t.Errorf("wsrep_sync_wait is %d, %v", left, err)
			}
		})
	}
}

// TestCatchUpElsewhere: see catchUpElsewhere.
func TestCatchUpElsewhere(t *testing.T) { catchUpElsewhere(t, teststack.MySQL(t)) }

// TestGaleraCatchUpElsewhere: see catchUpElsewhere. Another node of the cluster is another server.
func TestGaleraCatchUpElsewhere(t *testing.T) {
	ctx := context.Background()
	nodes := teststack.Galera(t)
	catchUpElsewhere(t, nodes[0])
	d, _ := Of("mysql")
	var all [2]*sql.Conn
	for i := range all {
		config, err := mysql.ParseDSN(nodes[i])
		if err != nil {
			t.Fatal(err)
		}
		all[i] = connectionOf(t, config)
	}
	s, err := d.ReadSession(ctx, all[0])
	if err != nil || !s.Galera || s.Family != MariaDB {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := d.CatchUp(ctx, all[0], s); err != nil {
		t.Error(err)
	}
	if err := d.CatchUp(ctx, all[1], s); !errors.Is(err, errElsewhere) {
		t.Errorf("at another node: %v", err)
	}
}

// catchUpElsewhere: what another server has waited for, or another session without the setting,
// shows nothing of the server that is asked.
func catchUpElsewhere(t *testing.T, dsn string) {
	t.Helper()
	ctx := context.Background()
	d, _ := Of("mysql")
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	direct := connectionOf(t, config)
	s, err := d.ReadSession(ctx, direct)
	if err != nil {
		t.Fatal(err)
	}
	if _, unknown := direct.ExecContext(ctx, "SET SESSION wsrep_sync_wait = 0"); sqlerr.IsMySQL(unknown, 1193) { // no such variable
		t.Skip("the server knows no Galera")
	} else if unknown != nil {
		t.Fatal(unknown)
	}
	proxied := func() *sql.Conn {
		return connectionBy(t, &testdb.Multiplexer{Sessions: []driver.Connector{connector, connector}})
	}
	another := strings.Replace(s.Server, ":", "-2:", 1)
	for name, tt := range map[string]struct {
		c      *sql.Conn
		family Family
		server string
		want   error
	}{
		"MariaDB":                          {direct, MariaDB, s.Server, nil},
		"MariaDB by a proxy":               {proxied(), MariaDB, s.Server, nil},
		"MariaDB, at another server":       {direct, MariaDB, another, errElsewhere},
		"Percona":                          {direct, MySQL, s.Server, nil},
		"Percona, in a session without it": {proxied(), MySQL, s.Server, errElsewhere},
		"Percona, at another server":       {connectionOf(t, config), MySQL, another, errElsewhere},
	} {
		s.Galera, s.Family, s.Server = true, tt.family, tt.server
		if err := d.CatchUp(ctx, tt.c, s); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// TestCatchUpOfANamelessNode: wsrep_node_name may be empty. Then the other names identify the server.
func TestCatchUpOfANamelessNode(t *testing.T) {
	config, err := mysql.ParseDSN(teststack.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := connectionOf(t, config)
	s := Session{Server: mysqlServer(map[string]string{"hostname": "db", "port": "3306", "server_id": "7", "wsrep_node_name": ""})}
	for read, want := range map[string]error{
		"'db', 3306, 7, '', 1":  nil,
		"'db', 3306, 7, '', 0":  errElsewhere,
		"'db', 3306, 8, '', 1":  errElsewhere,
		"'db', 3306, 7, 'n', 1": errElsewhere,
	} {
		if err := s.waitedAt(c.QueryRowContext(context.Background(), "SELECT "+read)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", read, err, want)
		}
	}
}

// connectionOf opens a connection that is closed when the test ends.
func connectionOf(t *testing.T, config *mysql.Config) *sql.Conn {
	t.Helper()
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	return connectionBy(t, connector)
}

func connectionBy(t *testing.T, connector driver.Connector) *sql.Conn {
	t.Helper()
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { _ = pool.Close() })
	c, err := pool.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestBeginOfASession: only where a transaction may be undone unnoticed its begin costs more.
func TestBeginOfASession(t *testing.T) {
	d, _ := Of("mysql")
	for _, tt := range []struct {
		session Session
		want    []string
	}{
		{Session{Autocommit: true}, []string{d.Begin}},
		{Session{Yields: true, Autocommit: true}, []string{d.Begin, "SAVEPOINT " + First}},
		{Session{Galera: true, Autocommit: true}, []string{"SET autocommit = 0", d.Begin}},
		{Session{Galera: true}, []string{d.Begin}},
		{Session{Family: MySQL, Sampled: true}, []string{d.Begin, "SAVEPOINT " + First}},
		{Session{Family: MariaDB, Sampled: true}, []string{d.Begin}},
	} {
		if got := tt.session.AppendBegin(nil, d); !slices.Equal(got, tt.want) {
			t.Errorf("%+v begins with %q, want %q", tt.session, got, tt.want)
		}
	}
}

// TestReadsLock: where a transaction has no snapshot, its reads need not lock.
func TestReadsLock(t *testing.T) {
	for level, want := range map[string]bool{
		"READ-UNCOMMITTED": false, "READ-COMMITTED": false, "REPEATABLE-READ": false, "SERIALIZABLE": true, "": true,
	} {
		if got := readsLock(level); got != want {
			t.Errorf("%s: a read locks: %v, want %v", level, got, want)
		}
	}
}
