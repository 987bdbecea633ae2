package pgxguard_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belaygo/belay/guard"
)

// TestRepeatOfTheLastSale: who has bought the last item in the guide's sample, and repeats the request for want
// of an answer, is told that it was done, and a later buyer that no item is left.
func TestRepeatOfTheLastSale(t *testing.T) {
	s := newShop(t)
	_, err := s.pool.Exec(bg, `CREATE TABLE sales (no TEXT NOT NULL PRIMARY KEY, item BIGINT NOT NULL);
		CREATE TABLE items (id BIGINT PRIMARY KEY, remains INT NOT NULL, version BIGINT NOT NULL DEFAULT 1);
		INSERT INTO items (id, remains) VALUES (7, 1)`)
	wantNil(t, err)
	wantNil(t, sell(bg, s.Guard.Guard, "A-1", 7))
	if err := sell(bg, s.Guard.Guard, "A-1", 7); !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("the repeat gets %v, want ErrDuplicate", err)
	}
	if err := sell(bg, s.Guard.Guard, "B-1", 7); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("the next buyer gets %v, want ErrNoRows", err)
	}
}
