// Package http_test shows httpguard in routers that others use.
package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
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
		}, echo.WrapMiddleware(guarded))
		return e
	},
}

// ginWrap makes a middleware of gin, whose writer has methods of its own: that of httpguard
// takes its place while the handlers run.
func ginWrap(guarded middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		outer := c.Writer
		guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.Request, c.Writer = r, ginWriter{outer, w}
			c.Next()
		})).ServeHTTP(outer, c.Request)
		c.Writer = outer
		c.Abort() // the handlers have run, or are not to
	}
}

type ginWriter struct {
	gin.ResponseWriter
	w http.ResponseWriter
}

func (w ginWriter) Header() http.Header               { return w.w.Header() }
func (w ginWriter) WriteHeader(status int)            { w.w.WriteHeader(status) }
func (w ginWriter) WriteHeaderNow()                   {}
func (w ginWriter) Write(p []byte) (int, error)       { return w.w.Write(p) }
func (w ginWriter) WriteString(s string) (int, error) { return io.WriteString(w.w, s) }
func (w ginWriter) Flush()                            {}

// Hijack would reach the client past the Guard.
func (w ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
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

// TestRouters: a payment is made once and answered twice.
func TestRouters(t *testing.T) {
	for name, router := range routers {
		t.Run(name, func(t *testing.T) {
			db := testdb.OpenSQLite(t, t.TempDir()+"/site.db")
			testdb.WantNil(t, db.AutoMigrate(&Account{}))
			testdb.WantNil(t, once.Migrate(t.Context(), db))
			testdb.WantNil(t, db.Create(&Account{ID: 7, Cents: 1000}).Error)
			guarded, err := httpguard.New(guardtest.New(t, db).Guard, httpguard.Config{
				Principal: func(*http.Request) (string, error) { return "eve", nil },
			})
			testdb.WantNil(t, err)
			server := httptest.NewServer(router(guarded))
			defer server.Close()
			for n := range 2 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/payments/1", strings.NewReader("{}"))
				testdb.WantNil(t, err)
				r.Header.Set("Idempotency-Key", `"a"`)
				res, err := server.Client().Do(r)
				testdb.WantNil(t, err)
				body, err := io.ReadAll(res.Body)
				testdb.WantNil(t, err)
				testdb.WantNil(t, res.Body.Close())
				if res.StatusCode != http.StatusCreated || strings.TrimSpace(string(body)) != `{"left":999}` {
					t.Errorf("answer %d is %s, %s", n+1, res.Status, body)
				}
				if replayed := res.Header.Get("Idempotent-Replayed") == "true"; replayed != (n == 1) {
					t.Errorf("answer %d is replayed: %t", n+1, replayed)
				}
			}
			var a Account
			testdb.WantNil(t, db.Take(&a, 7).Error)
			if a.Cents != 999 {
				t.Errorf("%d cents are left, want 999", a.Cents)
			}
		})
	}
}
