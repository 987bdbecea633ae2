package dbtx_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// eachServer runs f on every database that lets two transactions write at once,
// and on MySQL's kind at READ COMMITTED, too.
func eachServer(t *testing.T, f func(t *testing.T, db *gorm.DB)) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() != "sqlite" {
			f(t, db)
		}
	})
	t.Run("mysql, read committed", func(t *testing.T) {
		dsn := teststack.MySQL(t)
		var name struct{ VariableName string } // servers differ in it, and new ones have both
		wantNil(t, testdb.OpenMySQL(t, dsn).Raw(`SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')`).Take(&name).Error)
		db := testdb.OpenMySQL(t, dsn+"&"+name.VariableName+"=%27READ-COMMITTED%27")
		prepare(t, db)
		f(t, db)
	})
}

// refused ends a transaction without effect, and returns its conflict.
func refused(tx *dbtx.Tx) *dbguard.ConflictError {
	tx.Rollback()
	return tx.Conflict()
}

func overlap(c *dbguard.ConflictError) bool {
	return c != nil && c.Evidence.Changed
}

func repeat(c *dbguard.ConflictError) bool {
	return c != nil && c.Evidence.Found && !overlap(c) && !c.Evidence.Expected && !c.Evidence.Unread
}

func business(c *dbguard.ConflictError) bool {
	return c == nil || !overlap(c) && !c.Evidence.Unread && (!c.Evidence.Found || c.Evidence.Expected)
}

// TestEvidence has another writer come between the snapshot and the write.
func TestEvidence(t *testing.T) {
	insert := func(no string) func(*gorm.DB) error {
		return func(db *gorm.DB) error { return db.Create(&Order{No: no}).Error }
	}
	inShop := func(no string, serial int) func(*gorm.DB) error {
		return func(db *gorm.DB) error { return db.Create(&Order{No: no, Shop: "s", Serial: &serial}).Error }
	}
	update := func(version dbguard.Version) func(*gorm.DB) error {
		return func(db *gorm.DB) error { return db.Model(&Stock{ID: 1, Version: version}).Update("left", 1).Error }
	}
	remove := func(db *gorm.DB) error { return db.Delete(&Stock{}, 1).Error }
	conditional := func(version dbguard.Version) func(*gorm.DB) error {
		return func(db *gorm.DB) error {
			return db.Model(&Stock{ID: 1, Version: version}).Where(left(db)+" > 100").Update("left", 1).Error
		}
	}
	nothing := func(*gorm.DB) error { return nil }
	then := func(fs ...func(*gorm.DB) error) func(*gorm.DB) error {
		return func(db *gorm.DB) error {
			for _, f := range fs {
				if err := f(db); err != nil {
					return err
				}
			}
			return nil
		}
	}
	raw := func(db *gorm.DB) error { return db.Exec("UPDATE stocks SET version = version + 1 WHERE id = 1").Error }
	load := func(db *gorm.DB) error { return db.Take(&Stock{}, 1).Error }
	cases := []struct {
		name                  string
		before, between, mine func(*gorm.DB) error
		want                  func(*dbguard.ConflictError) bool
	}{
		{"insert, before the lock", insert("k"), nothing, insert("k"), repeat},
		{"insert, under the lock", nothing, insert("k"), insert("k"), overlap},
		{"insert, twice by itself", nothing, nothing, then(insert("k"), insert("k")), business},
		{"another index, the key is free", inShop("x", 1), nothing, inShop("k", 1), business},
		{"another index fires first, before the lock", then(insert("k"), inShop("x", 1)), nothing, inShop("k", 1), repeat},
		{"another index fires, under the lock", inShop("x", 1), insert("k"), inShop("k", 1), overlap},
		{"another index was written under the lock", nothing, inShop("x", 1), inShop("k", 1), business},
		{"insert, deleted and made again", insert("k"), func(db *gorm.DB) error {
			if err := db.Where("no = ?", "k").Delete(&Order{}).Error; err != nil {
				return err
			}
			return db.Create(&Order{ID: 77, No: "k"}).Error
		}, insert("k"), overlap},
		{"update, before the lock", update(1), nothing, update(1), repeat},
		{"update, under the lock", nothing, update(1), update(1), overlap},
		{"update, loaded and changed under the lock", nothing, update(1), then(load, update(1)), overlap},
		{"update, an old version under another's", update(1), update(2), update(1), overlap},
		{"update, deleted under the lock", nothing, remove, update(1), overlap},
		{"update, deleted before", remove, nothing, update(1), business},
		{"update, another condition", nothing, nothing, conditional(1), business},
		{"update, another condition, an old version", update(1), nothing, conditional(1), repeat},
		{"update, own raw write first", nothing, nothing, then(load, raw, update(1)), business},
		{"delete, before the lock", update(1), nothing, func(db *gorm.DB) error { return db.Delete(&Stock{ID: 1, Version: 1}).Error }, repeat},
		{"delete, under the lock", nothing, update(1), func(db *gorm.DB) error { return db.Delete(&Stock{ID: 1, Version: 1}).Error }, overlap},
	}
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				wantNil(t, db.Where("1 = 1").Delete(&Order{}).Error)
				wantNil(t, db.Where("1 = 1").Delete(&Stock{}).Error)
				wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
				wantNil(t, tt.before(db))
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: "k"}))
				wantNil(t, tx.Protect(&Stock{ID: 1}))
				wantNil(t, tt.between(db))
				if err := tt.mine(tx.DB()); err == nil {
					t.Fatal("nothing was refused")
				}
				c := refused(tx)
				if !tt.want(c) {
					t.Errorf("conflict is %v with evidence %+v", c, evidence(c))
				}
			})
		}
	})
}

func evidence(c *dbguard.ConflictError) dbguard.Evidence {
	if c == nil {
		return dbguard.Evidence{}
	}
	return c.Evidence
}

// TestSecondAttempt: what the first attempt saw must not be hidden by the
// snapshot of the second.
func TestSecondAttempt(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		memory := new(dbtx.Memory)
		first := begin(t, db, dbtx.Options{Memory: memory})
		wantNil(t, first.Protect(&Stock{ID: 1}))
		var s Stock
		wantNil(t, first.DB().Take(&s, 1).Error)
		first.Rollback()

		second := begin(t, db, dbtx.Options{Memory: memory})
		wantNil(t, second.Protect(&Stock{ID: 1}))
		wantNil(t, second.DB().Take(&s, 1).Error)
		second.Rollback()

		wantNil(t, db.Model(&Stock{ID: 1}).Update("left", 4).Error)
		third := begin(t, db, dbtx.Options{Memory: memory})
		wantNil(t, third.Protect(&Stock{ID: 1}))
		wantStale(t, third.DB().Take(&s, 1).Error)
		if c := third.Conflict(); !overlap(c) || third.Poisoned() == nil {
			t.Errorf("conflict is %+v, want an overlap", c)
		}
		third.Rollback()
	})
}

// TestThreeInserts: one rolls back, and of two that waited for it the server
// ends one with a deadlock. That one finds the other's row when it tries again.
func TestThreeInserts(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() != "mysql" {
			return // it lets one of them through
		}
		begin0 := begin(t, db, dbtx.Options{})
		wantNil(t, begin0.DB().Create(&Order{No: "k"}).Error)
		type result struct {
			tx     *dbtx.Tx
			memory *dbtx.Memory
			err    error
		}
		results := make(chan result, 2)
		var ids []int64
		for range 2 {
			r := result{memory: new(dbtx.Memory)}
			r.tx = begin(t, db, dbtx.Options{Memory: r.memory})
			var id int64
			wantNil(t, r.tx.DB().Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
			ids = append(ids, id)
			wantNil(t, r.tx.Protect(&Order{No: "k"}))
			go func() {
				r.err = r.tx.DB().Create(&Order{No: "k"}).Error
				results <- r
			}()
		}
		testwait.Until(t, "both wait", func() bool { return testdb.Waiting(t, db, ids...) == 2 })
		begin0.Rollback()
		a, b := <-results, <-results
		if a.err == nil {
			a, b = b, a
		}
		if a.err == nil || b.err != nil {
			t.Fatalf("errors are %v and %v, want one deadlock", a.err, b.err)
		}
		wantIs(t, a.tx.DB().Create(&Order{No: "l"}).Error, dbtx.ErrPoisoned)
		a.tx.Rollback()
		wantNil(t, b.tx.Commit())

		again := begin(t, db, dbtx.Options{Memory: a.memory})
		wantNil(t, again.Protect(&Order{No: "k"}))
		wantIs(t, again.DB().Create(&Order{No: "k"}).Error, gorm.ErrDuplicatedKey)
		if c := again.Conflict(); !overlap(c) {
			t.Errorf("conflict is %+v with evidence %+v, want an overlap", c, evidence(c))
		}
	})
}

// TestJudgingDoesNotWait: a third transaction holds the row that is in the way.
func TestJudgingDoesNotWait(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "postgres" {
			return // there the insert itself waits
		}
		wantNil(t, db.Create(&Order{ID: 1, No: "k", Shop: "a"}).Error)
		tx := begin(t, db, dbtx.Options{EndTimeout: 2 * time.Minute}) // longer than inTime
		wantNil(t, tx.Protect(&Order{No: "k"}))
		holder := db.Begin()
		defer holder.Rollback()
		wantNil(t, holder.Model(&Order{}).Where("id = 1").Update("shop", "b").Error)
		inTime(t, func() {
			wantIs(t, tx.DB().Create(&Order{No: "k"}).Error, gorm.ErrDuplicatedKey)
		})
		if c := refused(tx); !repeat(c) {
			t.Errorf("conflict is %+v with evidence %+v, want a repeat", c, evidence(c))
		}
	})
}

// TestBatches: any row of a batch may be the one.
func TestBatches(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "old"}).Error)
		wantNil(t, db.Create(&[]Stock{{ID: 1}, {ID: 2}, {ID: 3}}).Error)
		tx := begin(t, db, dbtx.Options{})
		for _, no := range []string{"a", "old", "new"} {
			wantNil(t, tx.Protect(&Order{No: no}))
		}
		wantNil(t, db.Create(&Order{No: "new"}).Error)
		wantIs(t, tx.DB().Create(&[]Order{{No: "a"}, {No: "new"}}).Error, gorm.ErrDuplicatedKey)
		if c := refused(tx); !overlap(c) {
			t.Errorf("conflict is %+v with evidence %+v, want an overlap", c, evidence(c))
		}
		tx.Rollback()

		tx = begin(t, db, dbtx.Options{})
		stocks := []Stock{{ID: 1, Version: 1}, {ID: 2, Version: 1}, {ID: 3, Version: 1}}
		for i := range stocks {
			wantNil(t, tx.ProtectPrimary(&stocks[i]))
		}
		wantNil(t, tx.DB().Model(&stocks).Update("left", 7).Error)
		if c := tx.Coverage(); !c.Covered || stocks[2].Version != 2 {
			t.Errorf("coverage is %+v, in memory %+v", c, stocks)
		}
		tx.Rollback()

		wantNil(t, db.Exec("UPDATE stocks SET version = id + 2").Error)
		stocks = []Stock{{ID: 1, Version: 3}, {ID: 2, Version: 4}, {ID: 3, Version: 5}}
		for left := range 2 { // once more than the statement itself would raise it
			wantNil(t, db.Model(&Stock{ID: 2}).Update("left", left).Error)
		}
		tx = begin(t, db, dbtx.Options{})
		for i := range stocks {
			wantNil(t, tx.ProtectPrimary(&stocks[i]))
		}
		wantStale(t, tx.DB().Model(&stocks).Update("left", 7).Error)
		wantIs(t, tx.Poisoned(), dbtx.ErrPoisoned)
		if c := refused(tx); !repeat(c) || c.Evidence.Version != 4 || c.Evidence.FoundVersion != 6 {
			t.Errorf("conflict is %+v with evidence %+v, want the second row to be stale", c, evidence(c))
		}
		for _, s := range stocks {
			if int64(s.Version) != s.ID+2 {
				t.Errorf("in memory %+v, want the version that was loaded", s)
			}
		}

		wantNil(t, db.Exec("UPDATE stocks SET version = id + 2").Error)
		tx = begin(t, db, dbtx.Options{})
		for i := range stocks {
			wantNil(t, tx.ProtectPrimary(&stocks[i]))
		}
		wantNil(t, db.Model(&Stock{}).Where("id > 1").Update("left", 1).Error) // two of three under the lock
		if err := tx.DB().Model(&stocks).Update("left", 7).Error; err == nil {
			t.Error("rows were updated that another has written")
		}
		if c := refused(tx); !overlap(c) {
			t.Errorf("conflict is %+v with evidence %+v, want an overlap", c, evidence(c))
		}
	})
}

// TestReadForUpdate meets a row that has changed since the snapshot.
func TestReadForUpdate(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		var s Stock
		wantNil(t, tx.DB().Take(&s, 1).Error)
		wantNil(t, db.Model(&Stock{ID: 1}).Update("left", 4).Error)
		err := tx.DB().Clauses(clause.Locking{Strength: "UPDATE"}).Take(&s, 1).Error
		if errors.Is(tx.Commit(), nil) {
			t.Error("it was committed")
		}
		if c := tx.Conflict(); err == nil || !overlap(c) {
			t.Errorf("error is %v, conflict %+v with evidence %+v, want an overlap", err, c, evidence(c))
		}
	})
}
