package promises_test

import (
	"context"
	"math"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestVersionZeroIsRefused: a row without a version, which no update would compare, is not
// loaded by an operation. A late holder can't overwrite another's update of it.
func TestVersionZeroIsRefused(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantNil(e.t, e.db.Exec("UPDATE stocks SET version = 0").Error)
		save := func(_ context.Context, tx *gorm.DB) error {
			var s Stock
			if err := tx.Take(&s, 1).Error; err != nil {
				return err
			}
			s.Left--
			return tx.Save(&s).Error
		}
		wantIs(e.t, e.Do(bg, "sku:1", save, guard.Protects(&Stock{ID: 1})), dbguard.ErrVersion)
		wantIs(e.t, e.Do(bg, "sku:1", save), dbguard.ErrVersion)
		var names []int64 // what reads no version is no business of anybody's
		wantNil(e.t, e.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&Stock{}).Pluck("id", &names).Error
		}))
		if s := e.stock(1); s.Left != 9 || s.Version != 0 {
			e.t.Errorf("stock is %+v, want it unchanged", s)
		}
	})
}

// TestVersionAtItsLimit: where the database leaves a version at the limit of its column, as
// MySQL does without strict mode, the update is refused.
func TestVersionAtItsLimit(t *testing.T) {
	for kind, limit := range map[string]int64{"TINYINT": 127, "TINYINT UNSIGNED": 255, "SMALLINT": 1<<15 - 1} {
		t.Run(kind, func(t *testing.T) {
			db := testdb.OpenMySQL(t, teststack.MySQL(t)+"&sql_mode=%27%27")
			wantNil(t, db.Exec("CREATE TABLE stocks (id BIGINT PRIMARY KEY, `left` INT NOT NULL, version "+kind+" NOT NULL DEFAULT 1)").Error)
			e := &env{Guard: guardtest.New(t, db), t: t, db: db}
			e.create(&Stock{ID: 1, Left: 9, Version: dbguard.Version(limit) - 1})
			a, b := e.stock(1), e.stock(1)
			wantNil(t, e.Apply(bg, "sku:1", guard.Update(&a, take)))
			wantIs(t, e.Apply(bg, "sku:1", guard.Update(&b, take)), guard.ErrStale)
			wantIs(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)), dbguard.ErrVersion)
			wantIs(t, e.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
				_ = tx.Model(&a).Update("left", 0).Error
				return nil
			}), dbguard.ErrVersion)
			if s := e.stock(1); s.Left != 8 || int64(s.Version) != limit || a.Version != s.Version {
				t.Errorf("stock is %+v, in memory %+v", s, a)
			}
		})
	}
	each(t, func(e *env) {
		e.create(&Stock{ID: 2, Left: 9, Version: math.MaxInt64})
		wantIs(e.t, e.Apply(bg, "sku:2", guard.Update(&Stock{ID: 2}, take)), dbguard.ErrVersion)
	})
}
