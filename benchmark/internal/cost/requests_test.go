package cost_test

import (
	"bytes"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/teststack"
)

func TestRequestsKeepTheirBudget(t *testing.T) {
	const rows = 1019
	servers := stage.Servers{DSN: teststack.MySQL(t), AMQP: teststack.AMQP(t), Redis: teststack.Redis(t)}
	if err := shop.Seed(t.Context(), servers.DSN, rows, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drop(t, servers.DSN, shop.Database(rows)) })
	b, err := cost.Open(t.Context(), servers, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	// The counters are the servers', which others use as well. That only adds.
	const tries = 5
	for try := 1; ; try++ {
		costs, err := b.MeasureRequests(t.Context(), 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(costs) == 0 {
			t.Fatal("nothing was measured")
		}
		over := cost.OverBudget(costs)
		if len(over) == 0 {
			return
		}
		if try == tries {
			t.Fatal(over)
		}
	}
}
