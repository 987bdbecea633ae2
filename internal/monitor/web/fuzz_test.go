package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/monitor/store"
)

type connected struct{}

func (connected) Connected() bool { return true }

var fuzzed = sync.OnceValues(func() (*Handler, error) {
	st, err := store.Open(context.Background(), filepath.Join(os.TempDir(), fmt.Sprintf("belay-web-fuzz-%d.db", os.Getpid())))
	if err != nil {
		return nil, err
	}
	return NewHandler(Config{Store: st, Broker: connected{}, Metrics: prometheus.NewRegistry()})
})

// fuzzQuery expects a page or the words that the address is wrong: nothing that
// somebody may write there is the store's or the template's fault.
func fuzzQuery(t *testing.T, raw string) {
	t.Helper()
	h, err := fuzzed()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/events", "/incidents", "/timeline", "/api/v1/events", "/api/v1/incidents", "/api/v1/timeline", "/language"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.URL = &url.URL{Path: path, RawQuery: raw}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusSeeOther:
		default:
			t.Errorf("%s?%q: %d %.200s", path, raw, w.Code, w.Body)
		}
		if to := w.Header().Get("Location"); to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
			t.Errorf("%s?%q leads to %q", path, raw, to)
		}
	}
}
