package dbtx_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx"
)

// TestSubject: a conflict says what the row in the way is to the operation. One on a row does
// not hide one on a claim under the same key, nor the other way round.
func TestSubject(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "a"}).Error)
		wantNil(t, db.Create(&[]Stock{{ID: 1}, {ID: 2}}).Error)
		tx := begin(t, db, dbtx.Options{Key: "k"})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		for _, tt := range []struct {
			write func(*gorm.DB) error
			want  conflict.Subject
			key   string
		}{
			{func(tx *gorm.DB) error { return tx.Create(&Order{No: "a"}).Error }, conflict.ProtectedRow, "k"},
			{func(*gorm.DB) error { return tx.Claim("k", &Stock{ID: 1}, 0) }, conflict.ClaimRow, "k"},
			{func(tx *gorm.DB) error { return tx.Create(&Stock{ID: 2}).Error }, conflict.OtherRow, ""},
		} {
			err := tx.DB().Transaction(tt.write) // a savepoint: PostgreSQL takes nothing else after an error
			c, ok := errors.AsType[*dbguard.ConflictError](err)
			if !ok || c.Subject != tt.want || c.Key != tt.key {
				t.Errorf("the conflict is %+v (%v), want one on %d of key %q", c, err, tt.want, tt.key)
			}
		}
		tx.Rollback()
		found := make(map[conflict.Subject]string)
		for _, c := range tx.Conflicts() {
			found[c.Subject] += c.Table
		}
		if len(found) != 2 || found[conflict.ProtectedRow] != "orders" || found[conflict.ClaimRow] != "stocks" {
			t.Errorf("the conflicts are on %v, want one on the row and one on the claim", found)
		}
	})
}
