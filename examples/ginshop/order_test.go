package ginshop

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/guard/guardtest"
)

func sqliteDialect(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: dsn})
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body)))
	return w
}

func TestOrder(t *testing.T) {
	gin.SetMode(gin.TestMode)
	g := guardtest.Open(t, sqliteDialect, &Order{})
	shop := Routes(g.Guard, g.DB)
	for _, c := range []struct {
		name, body string
		status     int
		answer     string
	}{
		{"a new order", `{"no": "A-1", "cents": 990}`, http.StatusCreated, `{"id":1,"no":"A-1","cents":990}`},
		{"a repeat", `{"no": "A-1", "cents": 990}`, http.StatusOK, `{"id":1,"no":"A-1","cents":990}`},
		{"its number for something else", `{"no": "A-1", "cents": 5}`, http.StatusConflict, ""},
		{"another order", `{"id": 1, "no": "A-2", "cents": 5}`, http.StatusCreated, `{"id":2,"no":"A-2","cents":5}`},
		{"no number", `{"cents": 990}`, http.StatusBadRequest, ""},
		{"a number that is no lock key", `{"no": "{A", "cents": 990}`, http.StatusBadRequest, ""},
	} {
		w := post(shop, c.body)
		if w.Code != c.status || c.answer != "" && w.Body.String() != c.answer {
			t.Errorf("%s: %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.answer)
		}
	}
	if events := g.Events.All(); len(events) != 0 {
		t.Errorf("%d lock failures are reported", len(events))
	}
}

// No lock holds, and an order is still created once, by whichever instance.
func TestCreatedOnceWithoutLocks(t *testing.T) {
	gin.SetMode(gin.TestMode)
	g := guardtest.Open(t, sqliteDialect, &Order{})
	g.LoseAll(true)
	var created atomic.Int32
	var crowd sync.WaitGroup
	for range 8 {
		shop := Routes(g.Peer(t, g.DB), g.DB)
		crowd.Go(func() {
			switch w := post(shop, `{"no": "A-1", "cents": 990}`); w.Code {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusOK, http.StatusConflict, http.StatusServiceUnavailable: // there already, or the lock was lost
			default:
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	crowd.Wait()
	var rows int64
	if err := g.DB.Model(&Order{}).Count(&rows).Error; err != nil || rows != 1 || created.Load() > 1 {
		t.Errorf("%d orders, %d customers were told that theirs is created, %v", rows, created.Load(), err)
	}
}
