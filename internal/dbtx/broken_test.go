package dbtx_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

// TestConnectionBreaksAtAConflict: the rows are read on another connection, and compared
// with what the operation saw before.
func TestConnectionBreaksAtAConflict(t *testing.T) {
	insert := func(db *gorm.DB) error { return db.Create(&Order{No: "k"}).Error }
	update := func(db *gorm.DB) error { return db.Model(&Stock{ID: 1, Version: 1}).Update("left", 1).Error }
	for _, tt := range []struct {
		name          string
		before, under func(*gorm.DB) error // by another writer: before the lock is held, and then
		mine          func(*gorm.DB) error
		overlap       bool
	}{
		{"update, under the lock", nil, update, update, true},
		{"update, before the lock", update, nil, update, false},
		{"insert, under the lock", nil, insert, insert, true},
		{"insert, before the lock", insert, nil, insert, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, direct, db *gorm.DB, _ *testdb.Link) {
				wantNil(t, direct.Create(&Stock{ID: 1, Left: 5}).Error)
				do(t, tt.before, direct)
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: "k"}))
				wantNil(t, tx.Protect(&Stock{ID: 1}))
				wantNil(t, tx.DB().Take(&Stock{}, 1).Error)
				cut := beforeNextRead(t, direct, tx)
				do(t, tt.under, direct)
				if err := tt.mine(tx.DB()); err == nil {
					t.Fatal("not refused")
				}
				want := repeat
				sees := db.Name() == "postgres" || testdb.SnapshotIsolation(t, direct) || tt.name == "update, under the lock" // the row, before it writes
				if tt.overlap && sees {
					want = overlap
				}
				c := refused(tx)
				if !want(c) {
					t.Errorf("conflict is %+v with evidence %+v", c, evidence(c))
				}
				if !*cut {
					t.Error("the connection has not been broken")
				}
			})
		})
	}
}

func do(t *testing.T, f func(*gorm.DB) error, db *gorm.DB) {
	t.Helper()
	if f != nil {
		wantNil(t, f(db))
	}
}

// beforeNextRead has the server end the session of tx before the next query that gorm
// sends.
func beforeNextRead(t *testing.T, direct *gorm.DB, tx *dbtx.Tx) (cut *bool) {
	t.Helper()
	id, end := "CONNECTION_ID()", "KILL %d"
	if direct.Name() == "postgres" {
		id, end = "pg_backend_pid()", "SELECT pg_terminate_backend(%d, 5000)"
	}
	var session int
	wantNil(t, tx.DB().Raw("SELECT "+id).Scan(&session).Error)
	cut = new(bool)
	wantNil(t, tx.DB().Callback().Query().Before("gorm:query").Register("test:cut", func(*gorm.DB) {
		if !*cut {
			*cut = true
			wantNil(t, direct.Exec(fmt.Sprintf(end, session)).Error)
		}
	}))
	return cut
}
