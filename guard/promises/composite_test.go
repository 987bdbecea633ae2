package promises_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

type Bin struct {
	Tenant  string `gorm:"primaryKey;size:32"`
	Code    string `gorm:"primaryKey;size:32"`
	Left    int
	Version dbguard.Version
}

// TestCompositeKeyOfAnotherRow: keys of several texts are compared part by part. A conflict
// on a row that the key does not protect is not judged, though the parts make one text.
func TestCompositeKeyOfAnotherRow(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Bin{}))
		protected := Bin{Tenant: "1", Code: "23"}
		for _, other := range []Bin{{Tenant: "12", Code: "4"}, {Tenant: "12", Code: "3"}} {
			wantNil(e.t, e.db.Exec("DELETE FROM bins").Error)
			e.create(&Bin{Tenant: "1", Code: "23", Left: 5}, &other)
			wantNil(e.t, e.db.Exec("UPDATE bins SET version = version + 5").Error)
			old := other // of version 1
			err := e.Do(bg, "bin", func(_ context.Context, tx *gorm.DB) error {
				return tx.Model(&old).Update("left", 1).Error
			}, guard.Protects(&protected))
			c, ok := errors.AsType[*dbguard.ConflictError](err)
			if errors.Is(err, guard.ErrStale) || !ok || c.Evidence.Found {
				e.t.Errorf("%+v: error is %v", other, err)
			}
		}
	})
}
