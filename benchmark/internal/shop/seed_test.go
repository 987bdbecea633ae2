package shop_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/internal/teststack"
)

// rows is a size that nobody else seeds.
const rows = 250_017

// open returns the database of the size, which is dropped at the end, and the
// DSN to seed it.
func open(t *testing.T) (*sql.DB, string) {
	t.Helper()
	dsn := teststack.MySQL(t)
	db, err := shop.OpenPool(dsn, shop.Database(rows), 2)
	if err != nil {
		t.Fatal(err)
	}
	server, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	drop := func() {
		if _, err := server.Exec("DROP DATABASE IF EXISTS " + shop.Database(rows)); err != nil {
			t.Error(err)
		}
	}
	drop()
	t.Cleanup(func() {
		drop()
		server.Close()
		db.Close()
	})
	return db, dsn
}

// stopper ends a context when the output says so.
type stopper struct {
	bytes.Buffer
	at   string
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.stop != nil && strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

func TestSeedGoesOnWhereItWas(t *testing.T) {
	db, dsn := open(t)
	if err := shop.CheckSeeded(t.Context(), db, rows); !errors.Is(err, shop.ErrNotSeeded) || !strings.Contains(err.Error(), "seed -rows 250017") {
		t.Errorf("nothing seeded: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if err := shop.Seed(ctx, dsn, rows, &stopper{at: "100000/250017", stop: cancel}); err == nil {
		t.Fatal("the interrupted run was complete")
	}
	var there, last int64
	if err := db.QueryRow("SELECT COUNT(*), COALESCE(MAX(id), 0) FROM orders").Scan(&there, &last); err != nil {
		t.Fatal(err)
	}
	if there == 0 || there >= rows || there != last {
		t.Fatalf("%d orders up to %d after the interruption", there, last)
	}
	if err := shop.CheckSeeded(t.Context(), db, rows); !errors.Is(err, shop.ErrNotSeeded) || !strings.Contains(err.Error(), "of 250017 rows") {
		t.Errorf("half seeded: %v", err)
	}

	var out bytes.Buffer
	if err := shop.Seed(t.Context(), dsn, rows, &out); err != nil {
		t.Fatal(err)
	}
	if err := shop.CheckSeeded(t.Context(), db, rows); err != nil {
		t.Errorf("seeded: %v", err)
	}
	for _, table := range []string{"orders", "stocks"} {
		var n, least, greatest int64
		if err := db.QueryRow("SELECT COUNT(*), MIN(id), MAX(id) FROM "+table).Scan(&n, &least, &greatest); err != nil {
			t.Fatal(err)
		}
		if n != rows || least != 1 || greatest != rows {
			t.Errorf("%s: %d rows from %d to %d", table, n, least, greatest)
		}
	}
	var no string
	if err := db.QueryRow("SELECT no FROM orders WHERE id = 77").Scan(&no); err != nil || no != "A00000000077" {
		t.Errorf("order 77 is %q, %v", no, err)
	}
	out.Reset()
	if err := shop.Seed(t.Context(), dsn, rows, &out); err != nil || strings.Count(out.String(), "verified before") != 2 {
		t.Errorf("again: %v, %s", err, out.String())
	}
}

func TestSeedNoticesWhatIsMissing(t *testing.T) {
	db, dsn := open(t)
	if err := shop.Seed(t.Context(), dsn, rows, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"DELETE FROM orders WHERE id = 5", "UPDATE seed_progress SET verified = FALSE"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := shop.Seed(t.Context(), dsn, rows, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "250016 of 250017") {
		t.Errorf("error %v", err)
	}
}

func TestBadDSNIsNotShown(t *testing.T) {
	_, err := shop.OpenPool("user:secret@tcp(", "x", 1)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}
