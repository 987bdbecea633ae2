package dbtx_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestSerializationFailureAtCommit: of two transactions that each read what the other one
// writes PostgreSQL refuses the COMMIT of one. It was not committed, and may be made again.
func TestSerializationFailureAtCommit(t *testing.T) {
	dsn := teststack.Postgres(t) + "&default_transaction_isolation=serializable"
	db := testdb.OpenPostgres(t, dsn)
	prepare(t, db)
	wantNil(t, db.Create(&[]Stock{{ID: 1, Left: 5}, {ID: 2, Left: 5}}).Error)
	sum := func(tx *dbtx.Tx) {
		var n int
		wantNil(t, tx.DB().Raw("SELECT sum("+left(db)+") FROM stocks").Scan(&n).Error)
	}
	write := func(tx *dbtx.Tx, id int64) {
		wantNil(t, tx.Protect(&Stock{ID: id}))
		wantNil(t, tx.DB().Model(&Stock{ID: id, Version: 1}).Update("left", gorm.Expr("? - 1", gorm.Expr(left(db)))).Error)
	}
	first, second := begin(t, db, dbtx.Options{}), begin(t, db, dbtx.Options{})
	sum(first)
	sum(second)
	write(second, 2)
	write(first, 1)
	wantNil(t, first.Commit())
	err := second.Commit()
	var refused interface{ SQLState() string }
	if !errors.As(err, &refused) || refused.SQLState() != "40001" {
		t.Fatalf("the second commit ended with %v, want 40001", err)
	}
	if errors.Is(err, dbtx.ErrCommitUnknown) || !dbtx.Retryable(err) {
		t.Errorf("unknown: %t, retryable: %t", errors.Is(err, dbtx.ErrCommitUnknown), dbtx.Retryable(err))
	}
	if s := stock(t, db, 2); s.Left != 5 || s.Version != 1 {
		t.Errorf("the row is %+v", s)
	}
	second = begin(t, db, dbtx.Options{})
	sum(second)
	write(second, 2)
	wantNil(t, second.Commit())
}
