package outbox

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// A limit is over as soon as one event is stored.
type limit struct {
	context.Context
	stored prometheus.Gatherer
}

func (l limit) Err() error {
	families, err := l.stored.Gather()
	if err == nil && families[0].GetMetric()[0].GetCounter().GetValue() > 0 {
		return context.DeadlineExceeded
	}
	return err
}

// When the time is over between two events of a batch, the second one is not
// stored, whatever became of the first.
func TestTimeIsOverBetweenTwoEvents(t *testing.T) {
	pool, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "outbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	o, err := New(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	entries := []*entry{
		{row: row{eventID: "1", body: []byte("{}")}},
		{row: row{eventID: "2", body: []byte("{}")}},
	}
	stored := prometheus.NewRegistry()
	stored.MustRegister(o.stored)
	o.writer.storeEach(limit{t.Context(), stored}, entries, context.Canceled)
	if err := entries[0].err; err != nil {
		t.Errorf("the first event: %v", err)
	}
	if n, err := o.table.count(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d rows, %v; want 1", n, err)
	}
	if entries[1].err == nil {
		t.Error("the second event is lost, and nobody knows")
	}
}
