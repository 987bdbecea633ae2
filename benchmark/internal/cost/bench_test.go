package cost_test

import (
	"bytes"
	"database/sql"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOneRunAtATime: the second would empty the tables of the first.
func TestOneRunAtATime(t *testing.T) {
	const rows = 1013
	servers := stage.Servers{DSN: teststack.MySQL(t), AMQP: teststack.AMQP(t), Redis: teststack.Redis(t)}
	if err := shop.Seed(t.Context(), servers.DSN, rows, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drop(t, servers.DSN, shop.Database(rows)) })

	first, err := cost.Open(t.Context(), servers, rows)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cost.Open(t.Context(), servers, rows); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("second beside the first: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	next, err := cost.Open(t.Context(), servers, rows)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	if err := next.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func drop(t *testing.T, dsn, database string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DROP DATABASE " + database); err != nil {
		t.Error(err)
	}
}
