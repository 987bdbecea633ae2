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

// TestDeferrableConflict: a row that a deferrable index refuses at the COMMIT is a business
// conflict, as it is where the index refuses it at once.
func TestDeferrableConflict(t *testing.T) {
	type Member struct {
		No    string `gorm:"primaryKey;size:64"`
		Email string
	}
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	wantNil(t, db.Exec("CREATE TABLE members (no VARCHAR(64) PRIMARY KEY, email TEXT UNIQUE DEFERRABLE INITIALLY DEFERRED)").Error)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	join := func(no string) error {
		return e.Apply(bg, "member:"+no, guard.Insert(&Member{No: no, Email: "a@example.com"}))
	}
	wantNil(t, join("1"))
	wantIs(t, join("1"), guard.ErrDuplicate)
	err := join("2")
	if c, ok := errors.AsType[*dbguard.ConflictError](err); !ok || c.Kind != dbguard.Duplicate || c.Table != "members" || c.Evidence.Protected {
		t.Errorf("error is %v, want a conflict on another row of members", err)
	}
	if n := e.count(&Member{}); n != 1 {
		t.Errorf("there are %d rows, want 1", n)
	}
	e.wantNoEvent()
}
