package guard_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// TestRepeatWithoutBarrier: a server that resembles PostgreSQL knows no setting of standbys
// and no messages. Its repeats are told as on any database.
func TestRepeatWithoutBarrier(t *testing.T) {
	dsn := teststack.Postgres(t)
	db := testdb.OpenPostgres(t, dsn)
	wantNil(t, db.AutoMigrate(&Order{}))
	wantNil(t, once.Migrate(bg, db))
	for _, ddl := range []string{
		"CREATE SCHEMA lesser",
		`CREATE FUNCTION lesser.current_setting(n text, missing boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			IF n = 'synchronous_standby_names' THEN RAISE 'no such setting' USING ERRCODE = '42704'; END IF;
			RETURN pg_catalog.current_setting(n, missing); END $$`,
		"CREATE FUNCTION lesser.current_setting(n text) RETURNS text LANGUAGE sql AS 'SELECT lesser.current_setting(n, false)'",
		`CREATE FUNCTION lesser.pg_logical_emit_message(boolean, text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			RAISE 'no such function' USING ERRCODE = '42883'; END $$`,
	} {
		wantNil(t, db.Exec(ddl).Error)
	}
	g := impatient(t, testdb.OpenPostgres(t, dsn+"&search_path=lesser,pg_catalog,public"))
	place := func(_ context.Context, tx *gorm.DB) error { return tx.Create(&Order{No: "2"}).Error }
	r := once.Request{Operation: "order", Scope: once.Anyone, ID: "1"}
	insert := func() error { return g.Apply(bg, "order:1", guard.Insert(&Order{No: "1"})) }
	serve := func() error { return g.Do(bg, "sku:1", place, guard.For(r)) }
	for _, do := range []func() error{insert, serve} {
		wantNil(t, do())
		wantIs(t, do(), guard.ErrDuplicate)
	}
	served, err := g.Served(bg, r)
	wantNil(t, err)
	if !served {
		t.Error("it was served")
	}
}
