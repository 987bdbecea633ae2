package guard_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
)

// TestRepeatOfTheLastSale: who has bought the last item in the guide's sample, and repeats the request for want
// of an answer, is told that it was done, and a later buyer that no item is left.
func TestRepeatOfTheLastSale(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite3",
		"CREATE TABLE sales (no VARCHAR(64) NOT NULL PRIMARY KEY, item INTEGER NOT NULL)",
		"CREATE TABLE items (id INTEGER PRIMARY KEY, left_over INTEGER NOT NULL, version INTEGER NOT NULL DEFAULT 1)",
		"INSERT INTO items (id, left_over) VALUES (7, 1)")
	wantNil(t, sellSQL(t.Context(), g.Guard, "A-1", 7))
	if err := sellSQL(t.Context(), g.Guard, "A-1", 7); !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("the repeat gets %v, want ErrDuplicate", err)
	}
	if err := sellSQL(t.Context(), g.Guard, "B-1", 7); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("the next buyer gets %v, want ErrNoRows", err)
	}
}
