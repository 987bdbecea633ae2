package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/once"
)

func sqliteDialect(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: dsn})
}

// instances are shops on one database, whose locks the test can lose.
func instances(t *testing.T, n int) (*guardtest.Guard, []http.Handler) {
	t.Helper()
	g := guardtest.Open(t, sqliteDialect, &Order{})
	if err := once.Migrate(t.Context(), g.DB); err != nil {
		t.Fatal(err)
	}
	handlers := make([]http.Handler, n)
	for i := range handlers {
		handler, err := (&shop{db: g.DB, guard: g.Peer(t, g.DB)}).handler()
		if err != nil {
			t.Fatal(err)
		}
		handlers[i] = handler
	}
	return g, handlers
}

func post(h http.Handler, path, body, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// No lock holds, and an order is still paid once, by whichever instance.
func TestPaidOnceWithoutLocks(t *testing.T) {
	g, shops := instances(t, 4)
	if w := post(shops[0], "/orders", `{"cents": 990}`, "create"); w.Code != http.StatusCreated {
		t.Fatalf("create: %d %s", w.Code, w.Body)
	}
	g.LoseAll(true)
	var paid atomic.Int32
	var customers sync.WaitGroup
	for i, shop := range shops {
		customers.Go(func() {
			switch w := post(shop, "/orders/1/payment", "", fmt.Sprint("pay-", i)); w.Code {
			case http.StatusOK:
				paid.Add(1)
			case http.StatusConflict, http.StatusServiceUnavailable: // paid already, or the lock was lost
			default:
				t.Errorf("pay: %d %s", w.Code, w.Body)
			}
		})
	}
	customers.Wait()
	if n := paid.Load(); n != 1 {
		t.Errorf("paid %d times", n)
	}
}

func TestReplies(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		retry  bool
	}{
		{fmt.Errorf("wrapped: %w", guard.ErrBusy), http.StatusConflict, true},
		{guard.ErrIntercepted, http.StatusConflict, true},
		{guard.ErrUnavailable, http.StatusServiceUnavailable, true},
		{guard.ErrUnknown, http.StatusGatewayTimeout, false},
		{context.Canceled, 499, false},
		{errPaid, http.StatusConflict, false},
		{gorm.ErrRecordNotFound, http.StatusNotFound, false},
		{errors.New("disk full"), http.StatusInternalServerError, false},
	} {
		w := httptest.NewRecorder()
		reply(w, http.StatusOK, nil, tt.err)
		if w.Code != tt.status || (w.Header().Get("Retry-After") != "") != tt.retry {
			t.Errorf("%v: %d, Retry-After %q", tt.err, w.Code, w.Header().Get("Retry-After"))
		}
	}
}
