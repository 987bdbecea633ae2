package dbtx_test

import (
	"net"
	"net/url"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestForeignTable: a transaction that writes a foreign table only has no number of its own.
// That does not prove that it has written nothing, nor does a count of 0 rows if others than the
// statement itself may have written.
func TestForeignTable(t *testing.T) {
	dsn := teststack.Postgres(t)
	direct := testdb.OpenPostgres(t, dsn)
	prepare(t, direct)
	wantNil(t, makeForeign(t, direct, dsn)) // Debian's server has postgres_fdw
	for _, query := range []string{
		"CREATE FUNCTION pay(n TEXT) RETURNS void LANGUAGE sql AS 'INSERT INTO far.orders (id, no) VALUES (1, n)'",
		"CREATE PROCEDURE pays(n TEXT) LANGUAGE sql AS 'INSERT INTO far.orders (id, no) VALUES (1, n)'",
		"CREATE TABLE slips (no TEXT)",
		"CREATE FUNCTION pay_slip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pay(NEW.no); RETURN NULL; END'",
		"CREATE TRIGGER pay BEFORE INSERT ON slips FOR EACH ROW EXECUTE FUNCTION pay_slip()",
	} {
		wantNil(t, direct.Exec(query).Error)
	}
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, dsn))
	wantNil(t, dbtx.Install(db))
	type write struct {
		write func(tx *gorm.DB) error
		want  dbtx.Outcome
	}
	sends := func(query string) write {
		return write{func(tx *gorm.DB) error { return tx.Exec(query).Error }, dbtx.Unresolved}
	}
	for name, tt := range map[string]write{
		"insert": {func(tx *gorm.DB) error {
			return tx.Exec("INSERT INTO far.orders (id, no) VALUES (1, 'a')").Error
		}, dbtx.Unresolved},
		"insert of gorm": {func(tx *gorm.DB) error {
			return tx.Table("far.stocks").Create(&Stock{ID: 7, Left: 1}).Error
		}, dbtx.Unresolved},
		"update": {func(tx *gorm.DB) error {
			return tx.Exec(`UPDATE far.stocks SET "left" = 3 WHERE id = 1`).Error
		}, dbtx.Unresolved},
		"update of no row": {func(tx *gorm.DB) error {
			return tx.Exec(`UPDATE far.stocks SET "left" = 3 WHERE id = 99`).Error
		}, dbtx.Committed},
		"update of no row by gorm": {func(tx *gorm.DB) error {
			return tx.Table("far.stocks").Where("id = 99").Update("left", 3).Error
		}, dbtx.Committed},
		"read": {func(tx *gorm.DB) error {
			return tx.Exec("SELECT COUNT(*) FROM far.stocks").Error
		}, dbtx.Committed},
		"function":                     sends("SELECT pay('a')"),
		"function in an update":        sends("UPDATE stocks SET version = 2 WHERE pay('a') IS NULL AND id = 99"),
		"procedure":                    sends("CALL pays('a')"),
		"block":                        sends("DO $$ BEGIN INSERT INTO far.orders (id, no) VALUES (1, 'a'); END $$"),
		"part":                         sends("WITH x AS (INSERT INTO far.orders (id, no) VALUES (1, 'a') RETURNING id) SELECT id FROM x WHERE id = 0"),
		"explained":                    sends("EXPLAIN ANALYZE INSERT INTO far.orders (id, no) VALUES (1, 'a')"),
		"trigger that leaves out rows": sends("INSERT INTO slips VALUES ('a')"),
	} {
		t.Run(name, func(t *testing.T) {
			wantNil(t, direct.Where("1 = 1").Delete(&Stock{}).Error)
			wantNil(t, direct.Create(&Stock{ID: 1, Left: 9}).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tt.write(tx.DB()))
			lose(t, tx, k, false)
			if o, err := tx.Resolve(bg); o != tt.want {
				t.Errorf("resolved as %v, %v, want %v", o, err, tt.want)
			}
		})
	}
}

// TestNoForeignTable: without foreign tables a transaction that has no number has written nothing,
// whatever it has called.
func TestNoForeignTable(t *testing.T) {
	dsn := teststack.Postgres(t)
	direct := testdb.OpenPostgres(t, dsn)
	prepare(t, direct)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, dsn))
	wantNil(t, dbtx.Install(db))
	for _, query := range []string{"SELECT pg_backend_pid()", "DO $$ BEGIN END $$", "UPDATE stocks SET version = 2 WHERE id = 99"} {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Exec(query).Error)
		lose(t, tx, k, false)
		if o, err := tx.Resolve(bg); o != dbtx.Committed {
			t.Errorf("%s: resolved as %v, %v", query, o, err)
		}
	}
}

// makeForeign makes the tables foreign tables, too, in the schema far.
func makeForeign(t *testing.T, db *gorm.DB, dsn string) error {
	t.Helper()
	u, err := url.Parse(dsn)
	wantNil(t, err)
	host, port, err := net.SplitHostPort(u.Host)
	wantNil(t, err)
	password, _ := u.User.Password()
	if err := db.Exec("CREATE EXTENSION postgres_fdw").Error; err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '" + host + "', port '" + port + "', dbname '" + u.Path[1:] + "')",
		"CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user '" + u.User.Username() + "', password '" + password + "')",
		"CREATE SCHEMA far",
		"IMPORT FOREIGN SCHEMA public LIMIT TO (orders, stocks) FROM SERVER far INTO far",
	} {
		wantNil(t, db.Exec(statement).Error)
	}
	return nil
}
