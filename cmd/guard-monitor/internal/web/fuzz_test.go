package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"", "verdict=lost,overlap&from=2026-05-04T03:02&limit=5", "show=all&state=new&before=x", "hours=24&to=2026-01-01",
		"key=%00&from=9999-99-99", "a;b=%zz", "to=zh&back=//evil.example/x", "from=0001-01-01&to=9999-12-31", "before=9223372036854775807",
	} {
		f.Add(s)
	}
	st, err := store.Open(f.Context(), filepath.Join(f.TempDir(), "monitor.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = st.Close() })
	h, err := NewHandler(Config{Store: st, Broker: connected{}, Metrics: prometheus.NewRegistry()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) { fuzzQuery(t, h, raw) })
}

type connected struct{}

func (connected) Err() error { return nil }

func (connected) DeadLetters() (int, bool) { return 0, true }

// fuzzQuery expects a page or the words that the address is wrong: nothing that
// somebody may write there is the store's or the template's fault.
func fuzzQuery(t *testing.T, h *Handler, raw string) {
	t.Helper()
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
