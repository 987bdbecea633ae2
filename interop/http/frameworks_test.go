// Package http_test shows httpguard in routers that others use.
package http_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/once"
)

type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// charge takes a cent, in the transaction of the request.
func charge(ctx context.Context) (left int64, err error) {
	a := Account{ID: 7}
	err = guard.Update(&a, func(a *Account) error { a.Cents--; return nil }).Run(ctx, guard.Tx(ctx))
	return a.Cents, err
}

type middleware = func(http.Handler) http.Handler

// routers are the same site by each router.
var routers = map[string]func(guarded middleware) http.Handler{
	"net/http": func(guarded middleware) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("POST /payments/{id}", guarded(http.HandlerFunc(pay)))
		return mux
	},
	"chi": func(guarded middleware) http.Handler {
		mux := chi.NewRouter()
		mux.With(guarded).Post("/payments/{id}", pay)
		return mux
	},
	"gin": func(guarded middleware) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		engine := gin.New()
		engine.POST("/payments/:id", ginWrap(guarded), func(c *gin.Context) {
			left, err := charge(c.Request.Context())
			if err != nil {
				c.String(http.StatusInternalServerError, "%v", err)
				return
			}
			c.JSON(http.StatusCreated, gin.H{"left": left})
		})
		return engine
	},
	"echo": func(guarded middleware) http.Handler {
		e := echo.New()
		e.POST("/payments/:id", func(c echo.Context) error {
			left, err := charge(c.Request().Context())
			if err != nil {
				return err
			}
			return c.JSON(http.StatusCreated, map[string]int64{"left": left})
		}, echoWrap(guarded))
		return e
	},
}

func pay(w http.ResponseWriter, r *http.Request) {
	left, err := charge(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"left":%d}`, left)
}

// An answer is what a client of the site gets.
type answer struct {
	code     int
	body     string
	replayed bool
}

// open serves a site, whose account has 1000 cents. pay sends the payment a, and left looks at the account.
func open(t *testing.T, router func(guarded middleware) http.Handler) (pay func() answer, left func() int64) {
	t.Helper()
	db := testdb.OpenSQLite(t, t.TempDir()+"/site.db")
	testdb.WantNil(t, db.AutoMigrate(&Account{}))
	testdb.WantNil(t, once.Migrate(t.Context(), db))
	testdb.WantNil(t, db.Create(&Account{ID: 7, Cents: 1000}).Error)
	guarded, err := httpguard.New(guardtest.New(t, db).Guard, httpguard.Config{
		Principal: func(*http.Request) (string, error) { return "eve", nil },
	})
	testdb.WantNil(t, err)
	server := httptest.NewServer(router(guarded))
	t.Cleanup(server.Close)
	pay = func() answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/payments/1", strings.NewReader("{}"))
		testdb.WantNil(t, err)
		r.Header.Set("Idempotency-Key", `"a"`)
		res, err := server.Client().Do(r)
		testdb.WantNil(t, err)
		body, err := io.ReadAll(res.Body)
		testdb.WantNil(t, err)
		testdb.WantNil(t, res.Body.Close())
		return answer{res.StatusCode, strings.TrimSpace(string(body)), res.Header.Get("Idempotent-Replayed") == "true"}
	}
	left = func() int64 {
		t.Helper()
		var a Account
		testdb.WantNil(t, db.Take(&a, 7).Error)
		return a.Cents
	}
	return pay, left
}

// TestRouters: a payment is made once and answered twice.
func TestRouters(t *testing.T) {
	for name, router := range routers {
		t.Run(name, func(t *testing.T) {
			pay, left := open(t, router)
			for n := range 2 {
				if got, want := pay(), (answer{http.StatusCreated, `{"left":999}`, n == 1}); got != want {
					t.Errorf("answer %d is %+v, want %+v", n+1, got, want)
				}
			}
			if cents := left(); cents != 999 {
				t.Errorf("%d cents are left, want 999", cents)
			}
		})
	}
}
