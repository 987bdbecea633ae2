package stage_test

import (
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReserve(t *testing.T) {
	const rows = 1019
	dsn := teststack.MySQL(t)
	first, second := open(t, dsn), open(t, dsn)
	release, err := stage.Reserve(t.Context(), first, rows)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stage.Reserve(t.Context(), second, rows); err == nil {
		t.Error("reserved twice")
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
	release, err = stage.Reserve(t.Context(), second, rows)
	if err != nil {
		t.Fatalf("after it was released: %v", err)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
