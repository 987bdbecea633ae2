package dbtx_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

// Twin has two unique indexes. The server checks one of them first.
type Twin struct {
	ID uint
	A  string `gorm:"size:16;uniqueIndex"`
	B  string `gorm:"size:16;uniqueIndex"`
}

// TestWhichIndexFires: it does not matter whether the protected row is named by the
// index that the server checks first or by the last one.
func TestWhichIndexFires(t *testing.T) {
	t.Parallel()
	type writes func(db *gorm.DB) error
	rows := func(twins ...Twin) writes {
		return func(db *gorm.DB) error {
			fresh := slices.Clone(twins) // without the keys that another database gave
			return db.Create(&fresh).Error
		}
	}
	nothing := func(*gorm.DB) error { return nil }
	first := make(map[string]string) // that fires of both, by the kind of server
	for _, protected := range []string{"a", "b"} {
		// twin is a row whose protected column is key and whose other one is not.
		twin := func(key, other string) Twin {
			if protected == "b" {
				key, other = other, key
			}
			return Twin{A: key, B: other}
		}
		for _, tt := range []struct {
			name            string
			before, between writes
			both            bool // indexes are in the way
			want            func(*dbguard.ConflictError) bool
		}{
			{"the other one", rows(twin("free", "x")), nothing, false, business},
			{"the other one, written under the lock", nothing, rows(twin("free", "x")), false, business},
			{"both by one row", rows(twin("k", "x")), nothing, true, repeat},
			{"both by two rows", rows(twin("k", "y"), twin("z", "x")), nothing, true, repeat},
			{"both, the key written under the lock", rows(twin("z", "x")), rows(twin("k", "y")), true, overlap},
			{"both, the other one written under the lock", rows(twin("k", "y")), rows(twin("z", "x")), true, repeat},
		} {
			t.Run(protected+"/"+tt.name, func(t *testing.T) {
				eachServer(t, func(t *testing.T, db *gorm.DB) {
					wantNil(t, db.AutoMigrate(&Twin{}))
					wantNil(t, tt.before(db))
					tx := begin(t, db, dbtx.Options{})
					key := twin("k", "")
					wantNil(t, tx.Protect(&key))
					wantNil(t, tt.between(db))
					mine := twin("k", "x")
					err := tx.DB().Create(&mine).Error
					wantIs(t, err, gorm.ErrDuplicatedKey)
					if tt.both {
						column := fired(t, err)
						if known, ok := first[db.Name()]; ok && column != known {
							t.Errorf("the index on %s fired, and before the one on %s: is the protected one ever the last?", column, known)
						}
						first[db.Name()] = column
					}
					c := refused(tx)
					if tx.Rollback(); !tt.want(c) {
						t.Errorf("conflict is %+v with evidence %+v", c, evidence(c))
					}
				})
			})
		}
	}
}

// fired returns the column whose index the server names.
func fired(t *testing.T, err error) string {
	t.Helper()
	var c *dbguard.ConflictError
	if !errors.As(err, &c) || c.Err == nil {
		t.Fatalf("error is %v, want a conflict with the driver's error in it", err)
	}
	for _, column := range []string{"a", "b"} {
		if strings.Contains(c.Err.Error(), "idx_twins_"+column) {
			return column
		}
	}
	t.Fatalf("error is %v, which names no index", c.Err)
	return ""
}
