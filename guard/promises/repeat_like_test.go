package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
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
	g := alone(t, testdb.OpenPostgres(t, dsn+"&search_path=lesser,pg_catalog,public"), 0)
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

// TestStandbyAwayHidesNoFailure: a lock that was gone is told, though no standby has the claim
// that shows it.
func TestStandbyAwayHidesNoFailure(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.StartPostgres(t, "hides"))
	wantNil(t, once.Migrate(bg, db))
	r := once.Request{Operation: "order", Scope: once.Anyone, ID: "1"}
	serve := func(g *guard.Guard) error {
		return g.Do(bg, "sku:1", func(context.Context, *gorm.DB) error { return nil }, guard.For(r))
	}
	wantNil(t, serve(alone(t, db, 0)))
	locker, err := lock.New(robbed{memlock.New()}, lock.Config{})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, locker.Close(bg)) })
	g, err := guard.New(db, locker, guard.Config{Service: "test", EndTimeout: 2 * time.Second})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, g.Close(bg)) })
	testdb.SetStandby(t, db, "nobody")
	err = serve(g)
	_, failure := errors.AsType[*guard.InterceptionError](err)
	testdb.SetStandby(t, db, "")
	if !failure {
		t.Errorf("the lock's failure is not told: %v", err)
	}
}

// robbed is an engine that has none of its locks when it is asked.
type robbed struct{ lockengine.Engine }

func (robbed) Inspect(context.Context, string) (lockengine.Holder, error) {
	return lockengine.Holder{}, nil
}
