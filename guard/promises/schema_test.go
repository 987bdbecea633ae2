package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// TestTableOfAnotherSchema: what protects a row is that table's index in which it is written.
// One of the same name in another schema says nothing of it.
func TestTableOfAnotherSchema(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	for _, ddl := range []string{
		"CREATE SCHEMA sound",
		"CREATE SCHEMA bare",
		"CREATE TABLE sound.payments (id VARCHAR(64) PRIMARY KEY, created_at TIMESTAMPTZ NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
		"CREATE TABLE bare.payments (id VARCHAR(64) NOT NULL, created_at TIMESTAMPTZ NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
	} {
		wantNil(t, db.Exec(ddl).Error)
	}
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	for _, set := range []string{"SET LOCAL search_path = '%s'", "SET LOCAL SCHEMA '%s'", "SELECT set_config('search_path', '%s', TRUE)"} {
		pay := func(schema string) error {
			return e.Do(bg, "payment:1", func(ctx context.Context, tx *gorm.DB) error {
				if err := tx.Exec(fmt.Sprintf(set, schema)).Error; err != nil {
					return err
				}
				return guard.Insert(&Payment{ID: "1", Cents: 5}).Run(ctx, tx)
			})
		}
		if err := pay("sound"); err != nil && !errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("%s: error is %v", set, err)
		}
		wantIs(t, pay("sound"), guard.ErrDuplicate)
		wantIs(t, pay("bare"), dbguard.ErrUnprotectable)
	}
	wantIs(t, e.Do(bg, "payment:1", func(ctx context.Context, tx *gorm.DB) error {
		wantNil(t, tx.Exec("SET LOCAL search_path = bare").Error)
		wantNil(t, tx.SavePoint("a").Exec("SET LOCAL search_path = sound").Error)
		wantIs(t, tx.Transaction(func(tx *gorm.DB) error { return guard.Insert(&Payment{ID: "1"}).Run(ctx, tx) }), gorm.ErrDuplicatedKey)
		wantNil(t, tx.RollbackTo("a").Error)
		return guard.Insert(&Payment{ID: "2"}).Run(ctx, tx)
	}), dbguard.ErrUnprotectable)
	var n int64
	wantNil(t, db.Table("bare.payments").Count(&n).Error)
	if n != 0 {
		t.Errorf("%d rows are in the table without the index, want none", n)
	}
}

// TestPathThatStays: an operation does not set where the claims of later requests go.
func TestPathThatStays(t *testing.T) {
	dsn := teststack.Postgres(t)
	db := testdb.OpenPostgres(t, dsn)
	wantNil(t, db.AutoMigrate(&Stock{}))
	wantNil(t, once.Migrate(bg, db))
	wantNil(t, db.Create(&Stock{ID: 1, Left: 9}).Error)
	wantNil(t, db.Exec("CREATE SCHEMA t7").Error)
	wantNil(t, once.Migrate(bg, testdb.OpenPostgres(t, dsn+"&search_path=t7")))
	pool, err := db.DB()
	wantNil(t, err)
	pool.SetMaxOpenConns(1)
	g := guardtest.New(t, db)
	err = g.Do(bg, "tenant:7", func(_ context.Context, tx *gorm.DB) error {
		return tx.Exec("SET search_path = t7, public").Error
	})
	if err == nil || !strings.Contains(err.Error(), "SET LOCAL") {
		t.Errorf("error is %v, want one that names SET LOCAL", err)
	}
	wantNil(t, g.Do(bg, "stock:1", takeOne(1), guard.For(request("r"))))
	peer := g.Peer(t, testdb.OpenPostgres(t, dsn))
	wantIs(t, peer.Do(bg, "stock:1", takeOne(1), guard.For(request("r"))), guard.ErrDuplicate)
}
