package table1

import (
	"io"
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/teststack"
)

func sample(at, latency int, r shop.Result) load.Sample {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return load.Sample{
		At: start.Add(time.Duration(at) * time.Millisecond), Latency: time.Duration(latency) * time.Millisecond,
		Answer: shop.Answer{Result: r},
	}
}

func TestSummarize(t *testing.T) {
	samples := []load.Sample{
		sample(10, 90, shop.Done), sample(0, 50, shop.Busy), sample(20, 180, shop.Duplicate), sample(5, 80, shop.Intercepted), sample(5, 100, shop.Failed),
	}
	r := summarize(3, samples)
	if r.Round != 3 || r.Succeeded != 1 || r.FirstLayer != 1 || r.SecondLayer != 2 || r.Results["error"] != 1 {
		t.Errorf("counts %+v", r)
	}
	if r.Throughput != 25 { // 5 in 200 ms, from the first request to the last answer
		t.Errorf("throughput %v, want 25", r.Throughput)
	}
	if r.Mean < 99.9 || r.Mean > 100.1 {
		t.Errorf("mean %v, want 100", r.Mean)
	}
	line := timeline(shop.Belay, 3, samples, samples[1].At.Add(60*time.Millisecond))
	if line.Killed != 60 || len(line.Points) != 5 || line.Points[0] != (result.Point{Start: 10, Latency: 90, Result: "done"}) {
		t.Errorf("timeline %+v", line)
	}
}

// audited returns an experiment on an empty database.
func audited(t *testing.T) *experiment {
	t.Helper()
	db, err := shop.OpenPool(teststack.MySQL(t), "", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	e := &experiment{Trial: &stage.Trial{Stage: &stage.Stage{DB: db}, Result: &result.Run{}, Out: io.Discard}, cfg: Config{Stock: 50}}
	if err := shop.CreateTables(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return e
}

func execute(t *testing.T, e *experiment, statement string, args ...any) {
	t.Helper()
	if _, err := e.Stage.DB.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestAuditOfOrders(t *testing.T) {
	e := audited(t)
	execute(t, e, "ALTER TABLE orders DROP INDEX orders_no") // as if the second layer did not hold
	p := &plan{orders: []string{"R1", "R2", "R3"}}
	for _, tc := range []struct {
		name                  string
		rows                  []string
		told, failed          int
		duplicates, lost, bad int
	}{
		{"all is well", []string{"R1", "R2", "R3"}, 3, 0, 0, 0, 0},
		{"a duplicate", []string{"R1", "R2", "R3", "R3"}, 4, 0, 1, 0, 1},
		{"a duplicate that nobody was told of", []string{"R1", "R2", "R3", "R3"}, 3, 0, 1, 0, 1},
		{"told twice, one row", []string{"R1", "R2", "R3"}, 4, 0, 1, 1, 1},
		{"a lost insert", []string{"R1", "R2"}, 3, 0, 0, 1, 1},
		{"a row that nobody was told of", []string{"R1", "R2", "R3"}, 2, 0, 0, 0, 1},
		{"the same after an error", []string{"R1", "R2", "R3"}, 2, 1, 0, 0, 0},
	} {
		execute(t, e, "DELETE FROM orders")
		for _, no := range tc.rows {
			execute(t, e, "INSERT INTO orders (no, item, amount, created_at) VALUES (?, 1, 1, NOW())", no)
		}
		e.Result.Problems = nil
		r := result.Round{Counts: result.Counts{Succeeded: tc.told}, Results: map[string]int{"error": tc.failed}}
		if err := e.auditOrders(t.Context(), shop.Belay, p, &r); err != nil {
			t.Fatal(err)
		}
		if r.Duplicates != tc.duplicates || r.Lost != tc.lost || len(e.Result.Problems) != tc.bad {
			t.Errorf("%s: %d duplicates, %d lost, problems %v", tc.name, r.Duplicates, r.Lost, e.Result.Problems)
		}
	}
}

func TestAuditOfSale(t *testing.T) {
	e := audited(t)
	for _, tc := range []struct {
		name                string
		remaining, updates  int
		told, failed        int
		oversold, lost, bad int
	}{
		{"all is well", 0, 50, 50, 0, 0, 0, 0},
		{"nobody came", 50, 0, 0, 0, 0, 0, 0},
		{"a lost update", 1, 49, 50, 0, 0, 1, 1},
		{"an update over another", 1, 50, 50, 0, 0, 1, 1},
		{"oversold", -1, 51, 51, 0, 1, 0, 1},
		{"done and told as an error", 0, 50, 49, 1, 0, 0, 0},
		{"gone without a sale", 0, 50, 49, 0, 0, 1, 1},
	} {
		execute(t, e, "REPLACE INTO stocks (id, name, remaining, version) VALUES (7, 'x', 1, 10)")
		e.Result.Problems = nil
		p := &plan{item: 7}
		before, err := e.prepare(t.Context(), shop.BelayStock, p)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, e, "UPDATE stocks SET remaining = ?, version = version + ? WHERE id = 7", tc.remaining, tc.updates)
		r := result.Round{Counts: result.Counts{Succeeded: tc.told}, Results: map[string]int{"error": tc.failed}}
		if err := e.auditSale(t.Context(), shop.BelayStock, p, before, &r); err != nil {
			t.Fatal(err)
		}
		if r.Oversold != tc.oversold || r.Lost != tc.lost || len(e.Result.Problems) != tc.bad {
			t.Errorf("%s: %d oversold, %d lost, problems %v", tc.name, r.Oversold, r.Lost, e.Result.Problems)
		}
	}
}
