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
	costs, err := b.MeasureRequests(t.Context(), 50)
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(costs) == 0 {
		t.Error("nothing was measured")
	}
	for _, over := range cost.OverBudget(costs) {
		t.Error(over)
	}
}
