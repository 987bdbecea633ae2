package dbtx_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// eachLink runs f on servers that are reached by a link.
func eachLink(t *testing.T, f func(t *testing.T, direct, db *gorm.DB, k *testdb.Link)) {
	for name, server := range map[string]struct {
		dsn  func(testing.TB) string
		open func(testing.TB, string, ...gorm.Option) *gorm.DB
	}{
		"mysql":    {teststack.MySQL, testdb.OpenMySQL},
		"mysql9":   {teststack.MySQL9, testdb.OpenMySQL},
		"postgres": {teststack.Postgres, testdb.OpenPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t)
			direct := server.open(t, dsn)
			prepare(t, direct)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := server.open(t, k.Through(t, dsn))
			wantNil(t, dbtx.Install(db))
			f(t, direct, db, k)
		})
	}
}

// eachMySQLLink does so on those that keep no outcome of a transaction.
func eachMySQLLink(t *testing.T, f func(t *testing.T, direct, db *gorm.DB, k *testdb.Link)) {
	eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		if db.Name() == "mysql" {
			f(t, direct, db, k)
		}
	})
}

// TestUnknownCommit: PostgreSQL knows the outcome, and elsewhere a row may
// prove it.
func TestUnknownCommit(t *testing.T) {
	before := func(k *testdb.Link) *atomic.Bool { return &k.Before }
	after := func(k *testdb.Link) *atomic.Bool { return &k.After }
	stall := func(k *testdb.Link) *atomic.Bool { return &k.Stall }
	nothing := func(*gorm.DB) error { return nil }
	insert := func(tx *gorm.DB) error { return tx.Create(&Order{No: "a", Shop: "s"}).Error }
	update := func(tx *gorm.DB) error { return tx.Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error }
	remove := func(tx *gorm.DB) error { return tx.Delete(&Stock{ID: 1, Version: 1}).Error }
	then := func(fs ...func(*gorm.DB) error) func(*gorm.DB) error {
		return func(tx *gorm.DB) error {
			for _, f := range fs {
				if err := f(tx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	again := func(tx *gorm.DB) error { return tx.Create(&Stock{ID: 1, Left: 5}).Error }
	brew := func(tx *gorm.DB) error { return tx.Create(&Stock{ID: 2, Left: 5}).Error }
	stir := func(tx *gorm.DB) error { return tx.Model(&Stock{ID: 2, Version: 1}).Update("left", 4).Error }
	insertMap := func(tx *gorm.DB) error {
		return tx.Model(&Order{}).Create(map[string]any{"no": "a", "Shop": "s"}).Error
	}
	insertMaps := func(tx *gorm.DB) error {
		return tx.Model(&Order{}).Create(&[]map[string]any{{"no": "z"}, {"no": "a", "shop": "s"}}).Error
	}
	brewMap := func(tx *gorm.DB) error {
		return tx.Model(&Stock{}).Create(map[string]any{"id": int64(2), "Left": 5}).Error
	}
	insertTwo := func(tx *gorm.DB) error { return tx.Create(&[]Order{{No: "z"}, {No: "a", Shop: "s"}}).Error }
	updateAgain := func(tx *gorm.DB) error { return tx.Model(&Stock{ID: 1, Version: 2}).Update("left", 3).Error }
	for _, tt := range []struct {
		name  string
		cut   func(*testdb.Link) *atomic.Bool
		write func(*gorm.DB) error
		then  func(*gorm.DB) error // others, after the commit
		want  dbtx.Outcome         // where PostgreSQL does not decide
	}{
		{"insert, cut before", before, insert, nothing, dbtx.NotCommitted},
		{"insert, cut after", after, insert, nothing, dbtx.Committed},
		{"insert, the session lives on", stall, insert, nothing, dbtx.NotCommitted},
		{"insert, another's row is there", before, insert, func(db *gorm.DB) error { return db.Create(&Order{ID: 99, No: "a"}).Error }, dbtx.NotCommitted},
		{"insert, changed since", after, insert, func(db *gorm.DB) error { return db.Model(&Order{}).Where("no = ?", "a").Update("shop", "t").Error }, dbtx.Committed},
		{"update, cut before", before, update, nothing, dbtx.NotCommitted},
		{"update, cut after", after, update, nothing, dbtx.Unresolved},
		{"update, the session lives on", stall, update, nothing, dbtx.NotCommitted},
		{"update, another's instead", before, update, func(db *gorm.DB) error { return db.Model(&Stock{ID: 1}).Update("left", 3).Error }, dbtx.Unresolved},
		{"update, another's behind", after, update, func(db *gorm.DB) error { return db.Model(&Stock{ID: 1}).Update("left", 4).Error }, dbtx.Unresolved},
		{"update, the row is gone", after, update, func(db *gorm.DB) error { return db.Delete(&Stock{}, 1).Error }, dbtx.Unresolved},
		{"delete, cut before", before, remove, nothing, dbtx.NotCommitted},
		{"delete, cut after", after, remove, nothing, dbtx.Unresolved},
		{"nothing written", before, func(tx *gorm.DB) error { return tx.Find(&[]Order{}).Error }, nothing, dbtx.Committed},
		{"nothing protected", after, func(tx *gorm.DB) error { return tx.Create(&Order{No: "b"}).Error }, nothing, dbtx.Unresolved},
		{"inserted and deleted, cut before", before, then(insert, func(tx *gorm.DB) error {
			return tx.Where("1 = 1").Delete(&Order{No: "a"}).Error
		}), nothing, dbtx.Unresolved},
		{"deleted and inserted, cut before", before, then(remove, again), nothing, dbtx.Unresolved},
		{"inserted and updated, cut before", before, then(brew, stir), nothing, dbtx.NotCommitted},
		{"inserted and updated, cut after", after, then(brew, stir), nothing, dbtx.Unresolved},
		{"updated twice, cut before", before, then(update, updateAgain), nothing, dbtx.NotCommitted},
		{"updated twice, cut after", after, then(update, updateAgain), nothing, dbtx.Unresolved},
		{"updated twice, another's instead", before, then(update, updateAgain), func(db *gorm.DB) error { return db.Model(&Stock{ID: 1}).Update("left", 3).Error }, dbtx.Unresolved},
		{"a map, cut before", before, insertMap, nothing, dbtx.NotCommitted},
		{"a map, cut after", after, insertMap, nothing, dbtx.Committed},
		{"a map, changed since", after, insertMap, func(db *gorm.DB) error { return db.Model(&Order{}).Where("no = ?", "a").Update("shop", "t").Error }, dbtx.Committed},
		{"a map with its key, another's row is there", before, func(tx *gorm.DB) error {
			return tx.Model(&Order{}).Create(map[string]any{"ID": 98, "no": "a"}).Error
		}, func(db *gorm.DB) error { return db.Create(&Order{ID: 99, No: "a"}).Error }, dbtx.NotCommitted},
		{"a pointer to a map", after, func(tx *gorm.DB) error {
			return tx.Model(&Order{}).Create(&map[string]any{"No": "a", "Shop": gorm.Expr("'s'")}).Error
		}, nothing, dbtx.Committed},
		{"a map, a column omitted", after, func(tx *gorm.DB) error {
			return tx.Model(&Order{}).Omit("shop").Create(map[string]any{"no": "a", "Shop": "s"}).Error
		}, nothing, dbtx.Committed},
		{"a map, one column selected", after, func(tx *gorm.DB) error {
			return tx.Model(&Order{}).Select("No").Create(&[]map[string]any{{"no": "a", "Shop": "s"}}).Error
		}, nothing, dbtx.Unresolved},
		{"several maps, cut before", before, insertMaps, nothing, dbtx.NotCommitted},
		{"a map, updated and cut after", after, then(brewMap, stir), nothing, dbtx.Unresolved},
		{"several rows, cut before", before, insertTwo, nothing, dbtx.NotCommitted},
		{"undone to a savepoint", after, func(tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error { _ = insert(tx); return errUndo })
			return update(tx)
		}, nothing, dbtx.Unresolved},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.Create(&Stock{ID: 1, Left: 5}).Error)
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: "a"}))
				wantNil(t, tx.Protect(&Stock{ID: 1}))
				wantNil(t, tx.Protect(&Stock{ID: 2}))
				wantNil(t, tt.write(tx.DB()))
				undone := false
				tx.OnRollback(func() { undone = true })
				tt.cut(k).Store(true)
				wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
				tt.cut(k).Store(false)
				if undone {
					t.Error("undone before the outcome is known")
				}
				wantNil(t, tt.then(direct))
				want := tt.want
				if db.Name() == "postgres" {
					want = dbtx.NotCommitted
					if tt.cut(k) == &k.After || tt.name == "nothing written" {
						want = dbtx.Committed
					}
				}
				o, err := tx.Resolve(bg)
				if o != want || (err != nil) != (o == dbtx.Unresolved) {
					t.Errorf("resolved as %v, %v, want %v", o, err, want)
				}
				if undone != (o != dbtx.Committed) {
					t.Errorf("what was in memory: undone is %v", undone)
				}
				if _, err := tx.Resolve(bg); err == nil {
					t.Error("it can be resolved twice")
				}
			})
		})
	}
}

// TestUnknownCommitOfAFunction: a function that is called by a SELECT may have written.
func TestUnknownCommitOfAFunction(t *testing.T) {
	eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		create := "CREATE FUNCTION sell() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO orders (no) VALUES ('a'); RETURN 1; END"
		want := dbtx.Unresolved
		if db.Name() == "postgres" {
			create, want = "CREATE FUNCTION sell() RETURNS int LANGUAGE sql AS 'INSERT INTO orders (no) VALUES (''a''); SELECT 1'", dbtx.NotCommitted
		}
		wantNil(t, direct.Exec(create).Error)
		tx := begin(t, db, dbtx.Options{})
		var sold int
		wantNil(t, tx.DB().Raw("SELECT sell()").Scan(&sold).Error)
		if c := tx.Coverage(); !c.Wrote || c.Covered {
			t.Errorf("coverage is %+v, want wrote and not covered", c)
		}
		k.Before.Store(true)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		k.Before.Store(false)
		if o, err := tx.Resolve(bg); o != want {
			t.Errorf("resolved as %v, %v, want %v", o, err, want)
		}
	})
}

// TestGuessedKey: on a cluster, the keys of several rows that are inserted at once
// are not those that gorm counts.
func TestGuessedKey(t *testing.T) {
	for name, server := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "mysql9": teststack.MySQL9} {
		t.Run(name, func(t *testing.T) {
			dsn := server(t) + "&auto_increment_increment=7"
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := testdb.OpenMySQL(t, k.Through(t, dsn))
			prepare(t, db)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Order{No: "b"}))
			rows := []Order{{No: "a"}, {No: "b"}}
			wantNil(t, tx.DB().Create(&rows).Error)
			k.After.Store(true)
			wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
			k.After.Store(false)
			var got Order
			wantNil(t, db.Take(&got, "no = ?", "b").Error)
			want := dbtx.Committed
			if got.ID != rows[1].ID {
				want = dbtx.Unresolved
			}
			if o, err := tx.Resolve(bg); o != want {
				t.Errorf("key %d, in memory %d: resolved as %v, %v, want %v", got.ID, rows[1].ID, o, err, want)
			}
		})
	}
}

// TestKeyNotWritten: a primary key that the INSERT has left to the database may be
// another in memory.
func TestKeyNotWritten(t *testing.T) {
	eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		for i, write := range []func(tx *gorm.DB, no string) error{
			func(tx *gorm.DB, no string) error { return tx.Omit("ID").Create(&Order{ID: 77, No: no}).Error },
			func(tx *gorm.DB, no string) error { return tx.Select("No").Create(&Order{ID: 77, No: no}).Error },
			func(tx *gorm.DB, no string) error { // which MySQL does not know
				return tx.Clauses(clause.Returning{}).Omit("ID").Create(&Order{ID: 77, No: no}).Error
			},
			func(tx *gorm.DB, no string) error {
				return tx.Model(&Order{}).Omit("ID").Create(map[string]any{"ID": 77, "no": no}).Error
			},
			func(tx *gorm.DB, no string) error {
				return tx.Model(&Order{}).Omit("ID").Create(&[]map[string]any{{"ID": 77, "no": no}, {"ID": 78, "no": "-" + no}}).Error
			},
			func(tx *gorm.DB, no string) error { // MySQL makes a key in place of 0
				if tx.Name() != "mysql" {
					return tx.Create(&Order{No: no}).Error
				}
				return tx.Model(&Order{}).Create(&[]map[string]any{{"ID": 0, "no": no}}).Error
			},
			func(tx *gorm.DB, no string) error {
				if tx.Name() != "mysql" {
					return tx.Create(&Order{No: no}).Error
				}
				return tx.Model(&Order{}).Create(map[string]any{"ID": 0, "no": no}).Error
			},
			func(tx *gorm.DB, no string) error {
				if tx.Name() != "mysql" {
					return tx.Create(&Order{No: no}).Error
				}
				return tx.Model(&Order{}).Create(map[string]any{"id": 0, "no": no}).Error
			},
			func(tx *gorm.DB, no string) error {
				if tx.Name() != "mysql" {
					return tx.Create(&Order{No: no}).Error
				}
				return tx.Model(&Order{}).Create(&[]map[string]any{{"id": 0, "no": no}, {"id": 0, "no": "-" + no}}).Error
			},
		} {
			for committed, cut := range map[bool]*atomic.Bool{false: &k.Before, true: &k.After} {
				no := fmt.Sprint(i, committed)
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: no}))
				wantNil(t, write(tx.DB(), no))
				cut.Store(true)
				wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
				cut.Store(false)
				o, err := tx.Resolve(bg)
				if committed == (o == dbtx.NotCommitted) || !committed && o != dbtx.NotCommitted {
					t.Errorf("write %d, committed %v, resolved as %v, %v", i, committed, o, err)
				}
				if n := count(t, direct.Where("no = ?", no), &Order{}); (n == 1) != committed {
					t.Errorf("%d rows, committed %v", n, committed)
				}
			}
		}
	})
}

// TestKeyFromTheDatabase: MySQL makes a primary key and does not return it. Such a row
// may be anybody's.
func TestKeyFromTheDatabase(t *testing.T) {
	type Ticket struct {
		Code string `gorm:"primaryKey;size:36;default:(uuid())"`
		No   string `gorm:"size:16;uniqueIndex"`
	}
	for name, server := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "mysql9": teststack.MySQL9} {
		t.Run(name, func(t *testing.T) {
			dsn := server(t)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := testdb.OpenMySQL(t, k.Through(t, dsn))
			prepare(t, db)
			wantNil(t, db.AutoMigrate(&Ticket{}))
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Ticket{No: "a"}))
			wantNil(t, tx.DB().Create(&Ticket{No: "a"}).Error)
			k.After.Store(true)
			wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
			k.After.Store(false)
			if o, err := tx.Resolve(bg); o != dbtx.Unresolved {
				t.Errorf("resolved as %v, %v, want unresolved", o, err)
			}
		})
	}
}

// TestKeyInPart: of several maps gorm does not complete the primary keys on every
// database.
func TestKeyInPart(t *testing.T) {
	type Seat struct {
		ID   uint   `gorm:"primaryKey;autoIncrement"`
		Shop string `gorm:"primaryKey;size:16"`
		No   string `gorm:"size:16;uniqueIndex"`
	}
	eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.AutoMigrate(&Seat{}))
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Seat{No: "a"}))
		wantNil(t, tx.DB().Model(&Seat{}).Create(&[]map[string]any{{"shop": "s", "no": "a"}}).Error)
		k.After.Store(true)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		k.After.Store(false)
		if o, err := tx.Resolve(bg); o == dbtx.NotCommitted {
			t.Errorf("resolved as %v, %v", o, err)
		}
	})
}

// TestMissingRowNeedsTheLease: without it others may have deleted the row.
func TestMissingRowNeedsTheLease(t *testing.T) {
	errGone := errors.New("gone")
	eachMySQLLink(t, func(t *testing.T, _, db *gorm.DB, k *testdb.Link) {
		var gone error
		tx := begin(t, db, dbtx.Options{Alive: func() error { return gone }})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		k.Before.Store(true)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		k.Before.Store(false)
		gone = errGone
		o, err := tx.Resolve(bg)
		if o != dbtx.Unresolved {
			t.Errorf("resolved as %v", o)
		}
		wantIs(t, err, errGone)
	})
}

// TestProofNeedsNoLease: what is proven is so whoever has the lock.
func TestProofNeedsNoLease(t *testing.T) {
	eachLink(t, func(t *testing.T, _, db *gorm.DB, k *testdb.Link) {
		var gone error
		tx := begin(t, db, dbtx.Options{Alive: func() error { return gone }, Held: func() error { return gone }})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		k.After.Store(true)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		k.After.Store(false)
		gone = errors.New("gone")
		if o, err := tx.Resolve(bg); o != dbtx.Committed {
			t.Errorf("resolved as %v, %v, want committed", o, err)
		}
	})
}

// TestResolveIsBounded: another transaction holds the row.
func TestResolveIsBounded(t *testing.T) {
	eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.Create(&Stock{ID: 1, Left: 5}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		wantNil(t, tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error)
		k.After.Store(true)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		k.After.Store(false)
		holder := direct.Begin()
		defer holder.Rollback()
		wantNil(t, holder.Exec("UPDATE stocks SET version = version WHERE id = 1").Error)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		o, err := tx.Resolve(ctx)
		if o != dbtx.Unresolved {
			t.Errorf("resolved as %v", o)
		}
		wantIs(t, err, context.DeadlineExceeded)
	})
}

// TestKilledSession has the server end the session inside the transaction.
func TestKilledSession(t *testing.T) {
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	prepare(t, db)
	tx := begin(t, db, dbtx.Options{})
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	var id int
	wantNil(t, tx.DB().Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
	wantNil(t, db.Exec("KILL "+strconv.Itoa(id)).Error) // MySQL takes no parameter here
	if err := tx.DB().Create(&Order{No: "b"}).Error; err == nil {
		t.Fatal("a killed session took a statement")
	}
	wantIs(t, tx.DB().Create(&Order{No: "c"}).Error, dbtx.ErrPoisoned)
	tx.Rollback()
	if n := count(t, db, &Order{}); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}
