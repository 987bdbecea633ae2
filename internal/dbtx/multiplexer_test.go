package dbtx_test

import (
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// eachMultiplexer runs f on every server, with a pool by way of a multiplexer, a link to the server, and
// a pool past both.
func eachMultiplexer(t *testing.T, scatters bool, f func(t *testing.T, db, direct *gorm.DB, k *testdb.Link)) {
	open := func(t *testing.T, direct *gorm.DB, dsn string, connector func(string) (driver.Connector, error), dialector func(*sql.DB) gorm.Dialector) {
		prepare(t, direct)
		k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
		through, err := connector(k.Through(t, dsn))
		wantNil(t, err)
		pool := sql.OpenDB(&testdb.Multiplexer{Sessions: slices.Repeat([]driver.Connector{through}, 5), Scatters: scatters})
		t.Cleanup(func() { _ = pool.Close() })
		pool.SetMaxOpenConns(2)
		db, err := gorm.Open(dialector(pool), &gorm.Config{Logger: logger.Discard})
		wantNil(t, err)
		wantNil(t, dbtx.Install(db))
		f(t, db, direct, k)
	}
	onMySQL := func(dsn func(testing.TB) string) func(*testing.T) {
		return func(t *testing.T) {
			dsn := dsn(t)
			direct := testdb.OpenMySQL(t, dsn)
			open(t, direct, dsn, func(dsn string) (driver.Connector, error) {
				config, err := mysql.ParseDSN(dsn)
				wantNil(t, err)
				config.InterpolateParams = true // so that no statement is prepared
				return mysql.NewConnector(config)
			}, func(pool *sql.DB) gorm.Dialector {
				version := direct.Config.Dialector.(*gormmysql.Dialector).ServerVersion
				return gormmysql.New(gormmysql.Config{Conn: pool, ServerVersion: version})
			})
		}
	}
	t.Run("mysql", onMySQL(teststack.MySQL))
	t.Run("mysql80", onMySQL(teststack.MySQL80))
	t.Run("postgres", func(t *testing.T) {
		dsn := teststack.Postgres(t)
		open(t, testdb.OpenPostgres(t, dsn), dsn, func(dsn string) (driver.Connector, error) {
			config, err := pgx.ParseConfig(dsn)
			wantNil(t, err)
			return stdlib.GetConnector(*config), nil
		}, func(pool *sql.DB) gorm.Dialector {
			return gormpostgres.New(gormpostgres.Config{Conn: pool})
		})
	})
}

// TestMultiplexedSessions: a proxy that keeps a session for a transaction only changes no outcome.
func TestMultiplexedSessions(t *testing.T) {
	eachMultiplexer(t, false, func(t *testing.T, db, direct *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.Create(&Stock{ID: 1, Left: 9}).Error)
		for range 2 { // in other sessions
			resolveEach(t, db, direct, k)
			wantNil(t, direct.Exec("DELETE FROM orders").Error)
		}
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		wantNil(t, tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error)
		wantNil(t, tx.Commit())
		for range 3 {
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Stock{ID: 1}))
			if err := tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 3).Error; err == nil || tx.Conflict() == nil {
				t.Errorf("a stale update: %v, conflict %v", err, tx.Conflict())
			}
			tx.Rollback()
		}
	})
}
