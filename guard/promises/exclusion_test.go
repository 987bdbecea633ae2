package promises_test

import (
	"errors"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestExclusionConstraint: a row that PostgreSQL's EXCLUDE refuses is a business conflict, and
// a repeat if it is the row itself that is in the way.
func TestExclusionConstraint(t *testing.T) {
	type Booking struct {
		No   string `gorm:"primaryKey;size:64"`
		Span string `gorm:"type:int4range"`
	}
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	wantNil(t, db.Exec("CREATE TABLE bookings (no VARCHAR(64) PRIMARY KEY, span INT4RANGE NOT NULL, EXCLUDE USING gist (span WITH &&))").Error)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	book := func(no, span string) error {
		return e.Apply(bg, "booking:"+no, guard.Insert(&Booking{No: no, Span: span}))
	}
	wantNil(t, book("1", "[1,5)"))
	wantIs(t, book("1", "[1,5)"), guard.ErrDuplicate)
	err := book("2", "[4,9)")
	if c, ok := errors.AsType[*dbguard.ConflictError](err); !ok || c.Kind != dbguard.Duplicate {
		t.Errorf("error is %v, want a business conflict", err)
	}
	e.wantNoEvent()
}
