package belay_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// together is how many callers do the same at a time. Each has a Belay, as another process would.
const together = 8

// wantOnce calls f at once for many callers, each with a pool of its own: one is the first, and the
// others repeat.
func wantOnce(t *testing.T, dsn string, f func(db *gorm.DB) error) {
	t.Helper()
	dbs := make([]*gorm.DB, together)
	for i := range dbs {
		dbs[i] = testdb.OpenMySQL(t, dsn)
	}
	errs := make([]error, together)
	var callers sync.WaitGroup
	for i := range errs {
		callers.Go(func() {
			errs[i] = guard.ErrBusy
			for errors.Is(errs[i], guard.ErrBusy) { // on a slow machine, the wait may end
				errs[i] = f(dbs[i])
			}
		})
	}
	callers.Wait()
	var first, repeats int
	for _, err := range errs {
		switch {
		case err == nil:
			first++
		case errors.Is(err, guard.ErrDuplicate):
			repeats++
		default:
			t.Error(err)
		}
	}
	if first != 1 || repeats != together-1 {
		t.Errorf("%d were the first and %d repeated, want 1 and %d", first, repeats, together-1)
	}
}

// closed closes a Belay after f, if it is open.
func closed(t *testing.T, b *belay.Belay, err error, f func() error) error {
	t.Helper()
	if err != nil {
		return err
	}
	defer wantClosed(t, b)
	return f()
}

func wantRows(t *testing.T, db *gorm.DB, model any, want int64) {
	t.Helper()
	var n int64
	if err := db.Model(model).Count(&n).Error; err != nil || n != want {
		t.Errorf("%T: %d rows, %v, want %d", model, n, err, want)
	}
}

// shop opens the tables of the examples on MariaDB.
func shop(t *testing.T) (db *gorm.DB, dsn string) {
	t.Helper()
	dsn = teststack.MySQL(t)
	db = testdb.OpenMySQL(t, dsn)
	testdb.WantNil(t, db.AutoMigrate(&Order{}, &Payment{}))
	return db, dsn
}

func poolOf(t *testing.T, db *gorm.DB) *sql.DB {
	t.Helper()
	pool, err := db.DB()
	testdb.WantNil(t, err)
	return pool
}

func redisURL(t *testing.T) string {
	return "redis+cluster://" + strings.Join(teststack.Redis(t), ",")
}

// TestStart: the code of docs/start.md is right while callers repeat each other at once.
func TestStart(t *testing.T) {
	url := redisURL(t)
	t.Run("GORM", func(t *testing.T) {
		db, dsn := shop(t)
		no := teststack.Key(t, "7")
		wantOnce(t, dsn, func(db *gorm.DB) error {
			b, err := openShop(t.Context(), db, url)
			return closed(t, b, err, func() error { return place(t.Context(), b, no) })
		})
		wantRows(t, db, &Order{}, 1)
	})
	t.Run("SQL", func(t *testing.T) {
		db, dsn := shop(t)
		no := teststack.Key(t, "7")
		wantOnce(t, dsn, func(db *gorm.DB) error {
			b, err := openSQL(t.Context(), poolOf(t, db), url)
			return closed(t, b, err, func() error { return placeSQL(t.Context(), b, no) })
		})
		wantRows(t, db, &Order{}, 1)
	})
	t.Run("without Redis", func(t *testing.T) {
		db, dsn := shop(t)
		locks := poolOf(t, testdb.OpenMySQL(t, dsn))
		locks.SetMaxOpenConns(4)
		wantOnce(t, dsn, func(db *gorm.DB) error {
			return runWithoutRedis(t.Context(), db, locks, func(ctx context.Context, b *belay.Belay) error { return place(ctx, b, "7") })
		})
		wantRows(t, db, &Order{}, 1)
	})
	t.Run("messages in", func(t *testing.T) {
		db, _ := shop(t)
		b := opened(t, belay.Config{DB: db, Redis: url, Once: &once.PurgerConfig{}})
		messages, err := inbox.New(b.Guard, inbox.Config{Consumer: "orders"})
		testdb.WantNil(t, err)
		id := teststack.Key(t, "m")
		var deliveries sync.WaitGroup
		for range together {
			deliveries.Go(func() {
				got, err := take(t.Context(), messages, inbox.Message{ID: id, Body: []byte("{}")})
				for errors.Is(err, guard.ErrBusy) { // on a slow machine, the wait may end
					got, err = take(t.Context(), messages, inbox.Message{ID: id, Body: []byte("{}")})
				}
				if got != inbox.Ack || err != nil {
					t.Errorf("decision %v, %v", got, err)
				}
			})
		}
		deliveries.Wait()
		wantRows(t, db, &Payment{}, 1)
	})
	t.Run("messages out", func(t *testing.T) {
		db, dsn := shop(t)
		mailed := make(chan string, together)
		b, err := openForMail(t.Context(), db, url, func(_ context.Context, m relay.Message) error {
			mailed <- string(m.Body)
			return nil
		})
		testdb.WantNil(t, err)
		t.Cleanup(func() { wantClosed(t, b) })
		no := teststack.Key(t, "7")
		wantOnce(t, dsn, func(*gorm.DB) error { return placeAndMail(t.Context(), b.Guard, no) })
		if got := <-mailed; got != no || len(mailed) > 0 {
			t.Errorf("mailed %q, and %d more", got, len(mailed))
		}
	})
}

func opened(t *testing.T, cfg belay.Config) *belay.Belay {
	t.Helper()
	cfg.Service, cfg.Logger = "shop", slog.New(slog.DiscardHandler)
	return open(t, cfg)
}

// TestStartWithAKey sends what the README sends by curl, and gets what it shows.
func TestStartWithAKey(t *testing.T) {
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	testdb.WantNil(t, db.AutoMigrate(&Payment{}))
	b := opened(t, belay.Config{DB: db, Engine: memlock.New(), Once: &once.PurgerConfig{}})
	h, err := payments(b.Guard, func(*http.Request) (string, error) { return "ann", nil })
	testdb.WantNil(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /payments", h)
	server := httptest.NewServer(mux)
	defer server.Close()
	var shown bytes.Buffer
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/payments", nil)
		testdb.WantNil(t, err)
		r.Header.Set("Idempotency-Key", "7f3a")
		answer, err := server.Client().Do(r)
		testdb.WantNil(t, err)
		body, err := io.ReadAll(answer.Body)
		testdb.WantNil(t, errors.Join(err, answer.Body.Close()))
		fmt.Fprintf(&shown, "%d %s%s\n", answer.StatusCode, answer.Header.Get("Idempotent-Replayed"), body)
	}
	if got := shown.String(); got != "200 payment 1\n\n200 truepayment 1\n\n" {
		t.Errorf("the answers are %q", got)
	}
}
