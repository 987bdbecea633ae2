package dbtx_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

func TestProtect(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		serial := 1
		tx := begin(t, db, dbtx.Options{})
		for _, ok := range []any{&Order{No: "a"}, Order{No: "a"}, &Order{ID: 7}, &Order{Shop: "s", Serial: &serial}, &Stock{ID: 1, Version: 3}} {
			wantNil(t, tx.Protect(ok))
		}
		for _, bad := range []any{&Order{}, &Order{Shop: "s"}, &Order{No: "a", Shop: "s"}, &Stock{Left: 1}, 7, nil, (*Order)(nil), "orders", []Order{{No: "a"}}} {
			wantIs(t, tx.Protect(bad), dbguard.ErrUnprotectable)
		}
		wantNil(t, tx.ProtectPrimary(&Stock{ID: 1, Left: 2}))
		wantIs(t, tx.ProtectPrimary(&Stock{Left: 2}), dbguard.ErrUnprotectable)
	})
}

func TestProtectNew(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		serial := 1
		for _, tt := range []struct {
			row  *Order
			want string // in the error; empty = none
		}{
			{&Order{No: "a", ID: 3}, ""},
			{&Order{Shop: "s", Serial: &serial}, ""},
			{&Order{No: "a", Shop: "s"}, ""},
			{&Order{No: "a", Shop: "s", Serial: &serial}, " or "},
			{&Order{Shop: "s"}, "no unique index"},
		} {
			tx := begin(t, db, dbtx.Options{})
			err := tx.ProtectNew(tt.row)
			if tt.want == "" {
				wantNil(t, err)
			} else if !errors.Is(err, dbguard.ErrUnprotectable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: error is %v, want %q", tt.row, err, tt.want)
			}
			tx.Rollback()
		}
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.ProtectNew(&Order{No: "c"}))
		wantIs(t, tx.ProtectNew(&Order{No: "a", Shop: "s", Serial: &serial}), dbguard.ErrUnprotectable)
		wantNil(t, tx.Protect(&Order{No: "b"}))
		wantNil(t, tx.ProtectNew(&Order{No: "a", Shop: "s", Serial: &serial}))
	})
}

// TestConflictEvidence looks at what the two reads say.
func TestConflictEvidence(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{ID: 100, No: "old"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "old"}))
		wantNil(t, tx.Protect(&Order{No: "other"}))
		wantIs(t, tx.DB().Create(&Order{No: "old"}).Error, gorm.ErrDuplicatedKey)
		poison := tx.Poisoned()
		if db.Name() == "postgres" {
			tx.Rollback() // it takes no more statements
		}
		c := tx.Conflict()
		if c == nil || c.Evidence != (dbguard.Evidence{Protected: true, Found: true, Shared: true}) || c.Columns[0] != "no" {
			t.Fatalf("conflict is %+v", c)
		}
		if aborted := db.Name() == "postgres"; (poison != nil) != aborted {
			t.Errorf("after a repeat the transaction is poisoned by %v", poison)
		}
		if db.Name() == "sqlite" || db.Name() == "postgres" {
			return // nobody else can write now
		}
		// Behind "old", as the gap before it is locked; and before 100, as on
		// MySQL the duplicate has locked the end of the table.
		wantNil(t, db.Create(&Order{ID: 50, No: "other"}).Error)
		wantIs(t, tx.DB().Create(&[]Order{{No: "x"}, {No: "other"}}).Error, gorm.ErrDuplicatedKey)
		c = tx.Conflict()
		if c == nil || c.Evidence != (dbguard.Evidence{Protected: true, Found: true, Changed: true, Shared: true}) {
			t.Fatalf("conflict is %+v, want the weightier one", c)
		}
		wantIs(t, tx.DB().Create(&Order{No: "y"}).Error, dbtx.ErrPoisoned)
	})
}

// TestConflictNamesNoValues: the text of an error ends up in logs.
func TestConflictNamesNoValues(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "secret"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "secret"}))
		err := tx.DB().Create(&Order{No: "secret"}).Error
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error is %v", err)
		}
	})
}

// TestLockedRowProvesNothing: who holds the row at this moment may write it or not.
func TestLockedRowProvesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "sqlite" || db.Name() == "postgres" {
			return // nobody else can write now; what fails must not wait, and would end all
		}
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		wantNil(t, db.Model(&Stock{ID: 1}).Update("left", 4).Error)
		tx := begin(t, db, dbtx.Options{EndTimeout: 2 * time.Minute}) // longer than inTime
		wantNil(t, tx.ProtectPrimary(&Stock{ID: 1}))
		wantNil(t, tx.DB().Take(&Stock{}, 1).Error)
		writer := db.Begin()
		defer writer.Rollback()
		wantNil(t, writer.Model(&Stock{ID: 1}).Update("left", 3).Error)

		// An impossible condition: the update itself does not wait for the row.
		inTime(t, func() {
			wantStale(t, tx.DB().Model(&Stock{ID: 1, Version: 2}).Where("1 = 0").Update("left", 0).Error)
			tx.Rollback()
		})
		if c := tx.Conflict(); !business(c) {
			t.Errorf("conflict is %+v with evidence %+v", c, evidence(c))
		}
	})
}

// TestUnreadable: a conflict whose row can't be read is known to be one, and no more.
func TestUnreadable(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "postgres" {
			return // it reads before
		}
		wantNil(t, db.Create(&Order{No: "a"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		errUnreadable := errors.New("unreadable")
		wantNil(t, db.Callback().Query().Before("gorm:query").Register("test:unreadable", func(db *gorm.DB) { _ = db.AddError(errUnreadable) }))
		wantIs(t, tx.DB().Create(&Order{No: "a"}).Error, gorm.ErrDuplicatedKey)
		if c := refused(tx); c == nil || c.Evidence != (dbguard.Evidence{Protected: true, Unread: true}) {
			t.Errorf("conflict is %+v with evidence %+v, want an unread one", c, evidence(c))
		}
	})
}

// TestRivalAtWork: the key is free, and somebody is just inserting it.
func TestRivalAtWork(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "sqlite" || db.Name() == "postgres" {
			return // as above
		}
		wantNil(t, db.Create(&Order{ID: 1, No: "other"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "k"}))
		rival := db.Begin()
		defer rival.Rollback()
		wantNil(t, rival.Create(&Order{No: "k"}).Error)
		wantIs(t, tx.DB().Create(&Order{ID: 1, No: "k"}).Error, gorm.ErrDuplicatedKey) // by the primary key, which is checked first
		if c := refused(tx); !business(c) {
			t.Errorf("conflict is %+v with evidence %+v: nothing is committed that was in the way", c, evidence(c))
		}
	})
}

// TestConflictsOfMaps: gorm inserts them, too.
func TestConflictsOfMaps(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "a"}).Error)
		row := map[string]any{"No": "a"}
		for name, values := range map[string]any{
			"map": row, "pointer": &row, "slice": []map[string]any{{"no": "x"}, row}, "pointer to slice": &[]map[string]any{row},
		} {
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Order{No: "a"}))
			wantIs(t, tx.DB().Model(&Order{}).Create(values).Error, gorm.ErrDuplicatedKey)
			if c := refused(tx); c == nil || !c.Evidence.Found {
				t.Errorf("%s: conflict is %+v, want a judged one", name, c)
			}
			tx.Rollback()
		}
	})
}

// TestHeaviestConflict: what an operation swallowed must not hide what it met
// afterwards.
func TestHeaviestConflict(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Version: 2}).Error)
		wantNil(t, db.Create(&Order{No: "a"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.ProtectPrimary(&Stock{ID: 1}))
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.Protect(&Order{No: "b"}))
		wantStale(t, tx.DB().Model(&Stock{ID: 1, Version: 2}).Where("1 = 0").Update("left", 1).Error)
		if c := tx.Conflict(); c == nil || !c.Evidence.Expected {
			t.Fatalf("conflict is %+v, want one in which all is as expected", c)
		}
		wantIs(t, tx.DB().Create(&Order{No: "a"}).Error, gorm.ErrDuplicatedKey)
		if db.Name() == "postgres" {
			tx.Rollback() // it takes no more statements
		}
		if c := tx.Conflict(); c.Kind != dbguard.Duplicate {
			t.Errorf("conflict is %+v, want the duplicate", c)
		}
		if db.Name() == "postgres" {
			return
		}
		first := tx.Conflict()
		wantIs(t, tx.DB().Create(&Order{No: "a"}).Error, gorm.ErrDuplicatedKey)
		if c := tx.Conflict(); c != first {
			t.Error("another conflict of no more weight has taken its place")
		}
	})
}

// TestOwnRowInABatch: one of two rows that are in the way is another's.
func TestOwnRowInABatch(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "theirs"}).Error)
		for _, second := range []string{"mine", "theirs"} {
			tx := begin(t, db, dbtx.Options{})
			first := map[string]string{"mine": "theirs", "theirs": "mine"}[second]
			wantNil(t, tx.Protect(&Order{No: first}))
			wantNil(t, tx.Protect(&Order{No: second}))
			wantNil(t, tx.DB().Create(&Order{No: "mine"}).Error)
			wantIs(t, tx.DB().Create(&[]Order{{No: "mine"}, {No: "theirs"}}).Error, gorm.ErrDuplicatedKey)
			tx.Rollback()
			if c := tx.Conflict(); !repeat(c) {
				t.Errorf("conflict is %+v with evidence %+v, want a repeat", c, evidence(c))
			}
		}
	})
}

// TestOwnVersion: an operation that updates a row unseen, and then by the
// version that it had loaded, meets itself.
func TestOwnVersion(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1}).Error)
		s := stock(t, db, 1)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.ProtectPrimary(&s))
		wantNil(t, tx.DB().Model(&Stock{ID: 1}).Update("left", 1).Error)
		wantStale(t, tx.DB().Model(&s).Update("left", 2).Error)
		tx.Rollback()
		if c := tx.Conflict(); c == nil || !business(c) {
			t.Errorf("conflict is %+v with evidence %+v, want it to be with this transaction's own row", c, evidence(c))
		}
	})
}

// TestOldVersionBehindOwnWrites: whatever the transaction wrote before, an old version
// is one.
func TestOldVersionBehindOwnWrites(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		for _, tt := range []struct {
			name, sql string
		}{
			{"this row, by SQL that can't be told", "UPDATE stocks AS s SET version = s.version + 1 WHERE s.id = 1"},
			{"this row, by SQL", "UPDATE stocks SET version = version + 1 WHERE id = 1"},
			{"another row, by gorm", ""},
			{"another table", "UPDATE orders SET shop = 'x'"},
		} {
			wantNil(t, db.Where("1 = 1").Delete(&Stock{}).Error)
			wantNil(t, db.Create(&[]Stock{{ID: 1, Version: 2}, {ID: 2}}).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.ProtectPrimary(&Stock{ID: 1}))
			wantNil(t, tx.ProtectPrimary(&Stock{ID: 2}))
			if tt.sql == "" {
				wantNil(t, tx.DB().Model(&Stock{ID: 2}).Update("left", 1).Error)
			} else {
				wantNil(t, tx.DB().Exec(tt.sql).Error)
			}
			wantStale(t, tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 2).Error)
			tx.Rollback()
			if c := tx.Conflict(); !repeat(c) {
				t.Errorf("%s: conflict is %+v with evidence %+v, want a stale version", tt.name, c, evidence(c))
			}
		}
	})
}

// TestDryRunOwnsNothing: a statement that was only built wrote nothing.
func TestDryRunOwnsNothing(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "a"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Session(&gorm.Session{DryRun: true}).Create(&Order{No: "a"}).Error)
		wantNil(t, tx.DB().Clauses(clause.OnConflict{DoNothing: true}).Create(&Order{No: "a"}).Error)
		wantIs(t, tx.DB().Create(&Order{No: "a"}).Error, gorm.ErrDuplicatedKey)
		tx.Rollback()
		if c := tx.Conflict(); !repeat(c) {
			t.Errorf("conflict is %+v with evidence %+v, want one with another's row", c, evidence(c))
		}
	})
}

type Trimmed struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (m *Trimmed) BeforeCreate(*gorm.DB) error {
	m.No = strings.TrimSpace(m.No)
	return nil
}

// TestKeysOfAllKinds reads rows back by keys of types that need care.
func TestKeysOfAllKinds(t *testing.T) {
	type byBytes struct {
		ID uint
		K  []byte `gorm:"size:16;uniqueIndex"`
	}
	type byTime struct {
		ID uint
		K  time.Time `gorm:"uniqueIndex"`
	}
	type byNull struct {
		ID uint
		K  sql.NullString `gorm:"size:16;uniqueIndex"`
	}
	type byPointer struct {
		ID uint
		K  *string `gorm:"size:16;uniqueIndex"`
	}
	type bySerializer struct {
		ID uint
		K  struct{ A string } `gorm:"serializer:json;type:varchar(64);uniqueIndex"`
	}
	type byTwo struct {
		A int    `gorm:"primaryKey;autoIncrement:false"`
		B string `gorm:"primaryKey;size:16"`
	}
	type Part struct {
		Shop string `gorm:"size:16;uniqueIndex:u"`
		No   *int   `gorm:"uniqueIndex:u"`
	}
	type byEmbedded struct {
		ID uint
		*Part
	}
	type keyless struct {
		K string `gorm:"size:16;uniqueIndex"`
	}
	text, seven := "k", 7
	now := time.Now().Truncate(time.Millisecond)
	each(t, func(t *testing.T, db *gorm.DB) {
		for _, row := range []func() any{
			func() any { return &byBytes{K: []byte("k")} },
			func() any { return &byTime{K: now} },
			func() any { return &byNull{K: sql.NullString{String: "k", Valid: true}} },
			func() any { return &byPointer{K: &text} },
			func() any { return &bySerializer{K: struct{ A string }{"k"}} },
			func() any { return &byTwo{A: 1, B: "k"} },
			func() any { return &byEmbedded{Part: &Part{"k", &seven}} },
			func() any { return &keyless{K: "k"} },
		} {
			wantNil(t, db.AutoMigrate(row()))
			wantNil(t, db.Create(row()).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.ProtectNew(row()))
			wantIs(t, tx.DB().Create(row()).Error, gorm.ErrDuplicatedKey)
			if c := refused(tx); c == nil || c.Evidence != (dbguard.Evidence{Protected: true, Found: true}) {
				t.Errorf("%T: conflict is %+v, want one with a row that was there", row(), c)
			}
			tx.Rollback()
		}
		tx := begin(t, db, dbtx.Options{})
		wantIs(t, tx.Protect(byEmbedded{}), dbguard.ErrUnprotectable)
	})
}

// errorLog is a gorm logger that keeps the errors of statements.
type errorLog struct {
	logger.Interface
	errs []error
}

func (l *errorLog) Trace(_ context.Context, _ time.Time, _ func() (string, int64), err error) {
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// TestJudgingIsQuiet: the reads after a conflict are not the user's, and a log
// shows the values in them.
func TestJudgingIsQuiet(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Version: 2}).Error)
		log := &errorLog{Interface: logger.Discard}
		tx := begin(t, db.Session(&gorm.Session{Logger: log}), dbtx.Options{})
		wantNil(t, tx.ProtectPrimary(&Stock{ID: 1}))
		wantStale(t, tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 1).Error)
		if c := refused(tx); c == nil || c.Evidence.FoundVersion != 2 {
			t.Fatalf("conflict is %+v, want a judged one", c)
		}
		if len(log.errs) != 1 {
			t.Errorf("logged %v, want the conflict only", log.errs)
		}
	})
}
