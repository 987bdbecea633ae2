package promises_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// swallows are ways of PostgreSQL to leave out the rows that are inserted into a table.
var swallows = map[string]string{
	"trigger": `CREATE FUNCTION swallow_TABLE() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER swallow BEFORE INSERT ON TABLE FOR EACH ROW EXECUTE FUNCTION swallow_TABLE()`,
	"rule": "CREATE RULE swallow AS ON INSERT TO TABLE DO INSTEAD NOTHING",
}

// TestSwallowedInsert: where the database has inserted nothing, an Insert has not succeeded,
// nor was a request claimed.
func TestSwallowedInsert(t *testing.T) {
	for name, ddl := range swallows {
		t.Run(name, func(t *testing.T) {
			db := testdb.OpenPostgres(t, teststack.Postgres(t))
			wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
			wantNil(t, once.Migrate(bg, db))
			e := &env{Guard: guardtest.New(t, db), t: t, db: db}
			e.create(&Stock{ID: 1, Left: 9})
			for _, table := range []string{"orders", "belay_once"} {
				for statement := range strings.SplitSeq(strings.ReplaceAll(ddl, "TABLE", table), ";\n") {
					wantNil(t, db.Exec(statement).Error)
				}
			}
			for _, opts := range [][]guard.Option{nil, {guard.Combine(), guard.Wait(time.Minute)}} {
				if err := e.Apply(bg, "order:1", guard.Insert(&Order{No: "1"}), opts...); err == nil {
					t.Error("an insert of nothing returns nil")
				}
				if err := e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), append(opts, guard.For(request("a")))...); err == nil {
					t.Error("a request was served without a claim")
				}
			}
			if left := e.stock(1).Left; left != 9 {
				t.Errorf("%d are left, want 9", left)
			}
			e.wantNoEvent()
		})
	}
}

// TestInsertLeftOutIsNoProof: a trigger that leaves out rows which are there already does
// not show that they were not. Whoever inserted them before broke no lock.
func TestInsertLeftOutIsNoProof(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	wantNil(t, db.AutoMigrate(&Stock{}))
	wantNil(t, db.Exec(`CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF EXISTS (SELECT 1 FROM stocks WHERE id = NEW.id) THEN RETURN NULL; END IF; RETURN NEW; END'`).Error)
	wantNil(t, db.Exec("CREATE TRIGGER leave_out BEFORE INSERT ON stocks FOR EACH ROW EXECUTE FUNCTION leave_out()").Error)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	e.create(&Stock{ID: 1, Left: 9})
	wantNil(t, e.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Stock{ID: 1, Left: 5}).Error; err != nil {
			return err
		}
		var s Stock
		return tx.Take(&s, 1).Error
	}, guard.Protects(&Stock{ID: 1})))
	e.wantNoEvent()
}
