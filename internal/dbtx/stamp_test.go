package dbtx_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// Token is a row whose key comes from the program, as a request's number does.
type Token struct {
	Code   string `gorm:"primaryKey;size:64"`
	Amount int
	Stamp  dbguard.Stamp
}

// Label is the same without a stamp.
type Label struct {
	Code   string `gorm:"primaryKey;size:64"`
	Amount int
}

// Lot is deleted softly.
type Lot struct {
	ID        int64 `gorm:"autoIncrement:false"`
	Version   dbguard.Version
	Stamp     dbguard.Stamp
	DeletedAt gorm.DeletedAt
}

// TestStampProves: a stamp distinguishes the own write from another's of the same values,
// before it or after.
func TestStampProves(t *testing.T) {
	t.Parallel()
	insert := func(tx *gorm.DB) error { return tx.Create(&Token{Code: "a", Amount: 5}).Error }
	label := func(tx *gorm.DB) error { return tx.Create(&Label{Code: "a", Amount: 5}).Error }
	unscoped := func(tx *gorm.DB) error { return tx.Unscoped().Create(&Token{Code: "a", Amount: 5}).Error }
	update := func(tx *gorm.DB) error { return tx.Model(&Ware{ID: 1, Version: 1}).Update("left", 4).Error }
	save := func(tx *gorm.DB) error { return tx.Select("*").Updates(&Ware{ID: 1, Left: 4, Version: 1}).Error }
	twice := func(tx *gorm.DB) error {
		w := &Ware{ID: 1, Version: 1}
		if err := tx.Model(w).Update("left", 4).Error; err != nil {
			return err
		}
		return tx.Model(w).Update("left", 3).Error
	}
	remove := func(tx *gorm.DB) error { return tx.Delete(&Lot{ID: 1, Version: 1}).Error }
	nothing := func(*gorm.DB) error { return nil }
	later := func(tx *gorm.DB) error { return tx.Model(&Ware{ID: 1}).Update("left", 1).Error }
	for _, tt := range []struct {
		name   string
		write  func(*gorm.DB) error
		others func(*gorm.DB) error // after the COMMIT was lost
		before dbtx.Outcome         // if it did not arrive
		after  dbtx.Outcome         // if it did
	}{
		{"insert", insert, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"unscoped insert", unscoped, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"insert, raw SQL behind it", insert, func(db *gorm.DB) error { return db.Exec("UPDATE tokens SET amount = 6").Error }, dbtx.NotCommitted, dbtx.Committed},
		{"insert without a stamp", label, nothing, dbtx.NotCommitted, dbtx.Unresolved},
		{"update", update, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"update of all columns", save, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"update, another behind it", update, later, dbtx.NotCommitted, dbtx.Unresolved},
		{"two updates", twice, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"soft delete", remove, nothing, dbtx.NotCommitted, dbtx.Committed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Ware{}, &Token{}, &Label{}, &Lot{}))
				for arrives, want := range map[bool]dbtx.Outcome{false: tt.before, true: tt.after} {
					for _, table := range []string{"wares", "tokens", "labels", "lots"} {
						wantNil(t, direct.Exec("DELETE FROM "+table).Error)
					}
					wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
					wantNil(t, direct.Create(&Lot{ID: 1}).Error)
					tx := begin(t, db, dbtx.Options{})
					for _, row := range []any{&Ware{ID: 1}, &Lot{ID: 1}, &Token{Code: "a"}, &Label{Code: "a"}} {
						wantNil(t, tx.Protect(row))
					}
					wantNil(t, tt.write(tx.DB()))
					lose(t, tx, k, arrives)
					wantNil(t, tt.others(direct))
					if o, err := tx.Resolve(bg); o != want {
						t.Errorf("arrives %v: resolved as %v, %v, want %v", arrives, o, err, want)
					}
				}
			})
		})
	}
}

// TestRivalOfTheSameValues: another writes the very same instead of this one, or the
// same row again. A stamp distinguishes them; without one the outcome is not known.
func TestRivalOfTheSameValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		write func(*gorm.DB) error
		want  dbtx.Outcome
	}{
		{"insert, stamped", func(tx *gorm.DB) error { return tx.Create(&Token{Code: "a", Amount: 5}).Error }, dbtx.Unresolved},
		{"insert", func(tx *gorm.DB) error { return tx.Create(&Label{Code: "a", Amount: 5}).Error }, dbtx.Unresolved},
		{"update, stamped", func(tx *gorm.DB) error { return tx.Model(&Ware{ID: 1, Version: 1}).Update("left", 4).Error }, dbtx.NotCommitted},
		{"update", func(tx *gorm.DB) error { return tx.Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error }, dbtx.Unresolved},
		{"delete", func(tx *gorm.DB) error { return tx.Delete(&Stock{ID: 1, Version: 1}).Error }, dbtx.Unresolved},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Ware{}, &Token{}, &Label{}))
				wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
				wantNil(t, direct.Create(&Stock{ID: 1, Left: 5}).Error)
				tx := begin(t, db, dbtx.Options{})
				for _, row := range []any{&Ware{ID: 1}, &Stock{ID: 1}, &Token{Code: "a"}, &Label{Code: "a"}} {
					wantNil(t, tx.Protect(row))
				}
				wantNil(t, tt.write(tx.DB()))
				lose(t, tx, k, false)
				wantNil(t, tt.write(direct))
				want := tt.want
				if db.Name() == "postgres" {
					want = dbtx.NotCommitted
				}
				if o, err := tx.Resolve(bg); o != want {
					t.Errorf("resolved as %v, %v, want %v", o, err, want)
				}
			})
		})
	}
}

// TestStampInMemory: the struct has the stamp of its row, until a rollback.
func TestStampInMemory(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Ware{}))
		w := &Ware{ID: 1, Left: 5, Stamp: 7}
		wantNil(t, db.Create(w).Error)
		if w.Stamp == 0 || w.Stamp == 7 {
			t.Errorf("stamp is %d after the insert", w.Stamp)
		}
		stored := func() (s Ware) { wantNil(t, db.Take(&s, 1).Error); return s }
		if *w != stored() {
			t.Errorf("in memory %+v, in the database %+v", *w, stored())
		}
		before := *w
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Model(w).Update("left", 4).Error)
		if w.Stamp == before.Stamp {
			t.Error("an update keeps the stamp")
		}
		tx.Rollback()
		if w.Stamp != before.Stamp || w.Version != before.Version {
			t.Errorf("after the rollback %+v, want %+v", *w, before)
		}
		wantNil(t, db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"left"})}).
			Create(&Ware{ID: 1, Left: 3}).Error)
		if s := stored(); s.Stamp == before.Stamp || s.Stamp == 0 || s.Version != 2 {
			t.Errorf("after an upsert %+v", s)
		}
	})
}

// lose commits without an answer, whether the COMMIT arrives or not.
func lose(t *testing.T, tx *dbtx.Tx, k *testdb.Link, arrives bool) {
	t.Helper()
	cut := &k.Before
	if arrives {
		cut = &k.After
	}
	cut.Store(true)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	cut.Store(false)
}

// Rack is a Ware whose column keeps 32 bits of a stamp.
type Rack struct {
	ID      int64 `gorm:"autoIncrement:false"`
	Left    int
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// TestStampThatIsCut: without strict mode MySQL cuts a stamp to what its column holds. It is
// not taken for another's then, which would prove that nothing was committed.
func TestStampThatIsCut(t *testing.T) {
	dsn := teststack.MySQL(t)
	direct := testdb.OpenMySQL(t, dsn)
	wantNil(t, direct.AutoMigrate(&Rack{}))
	wantNil(t, direct.Exec("ALTER TABLE racks MODIFY stamp INT NOT NULL DEFAULT 0").Error)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenMySQL(t, k.Through(t, dsn)+"&sql_mode=%27%27")
	wantNil(t, dbtx.Install(db))
	for name, write := range map[string]func(*gorm.DB) error{
		"insert": func(tx *gorm.DB) error { return tx.Create(&Rack{ID: 1, Left: 9}).Error },
		"update": func(tx *gorm.DB) error { return tx.Model(&Rack{ID: 1, Version: 1}).Update("left", 8).Error },
	} {
		wantNil(t, direct.Exec("DELETE FROM racks").Error)
		if name == "update" {
			wantNil(t, direct.Exec("INSERT INTO racks (id, `left`, version) VALUES (1, 9, 1)").Error)
		}
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Rack{ID: 1}))
		wantNil(t, write(tx.DB()))
		if o, err := resolve(t, tx, k, true); o != dbtx.Unresolved {
			t.Errorf("%s: resolved as %v, %v, want unresolved", name, o, err)
		}
	}
}
