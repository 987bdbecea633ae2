package shop

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handler is an instance as an HTTP service, with an endpoint for each method and
// those by which the experiment controls it.
type handler struct {
	shop     *Service
	answered atomic.Int64
}

// newHandler returns
//
//	POST /METHOD?order=NO or ?item=ID   the operation; hold=1 lets it stand still
//	GET  /held?order=NO                 answers when the operation stands still
//	POST /resume?order=NO               lets it go on
//	GET  /answered                      how many operations have been answered
//	GET  /healthz, /metrics, /debug/pprof/
func newHandler(s *Service) (http.Handler, error) {
	h := &handler{shop: s}
	registry := prometheus.NewRegistry()
	for _, c := range s.Collectors() {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	for _, m := range Methods() {
		mux.HandleFunc("POST /"+string(m), h.operation(m))
	}
	mux.HandleFunc("GET /held", h.held)
	mux.HandleFunc("POST /resume", h.resume)
	mux.HandleFunc("GET /answered", h.count)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	return mux, nil
}

func (h *handler) operation(m Method) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		value := query.Get(m.Parameter())
		if value == "" {
			http.Error(w, "parameter "+m.Parameter()+" is missing", http.StatusBadRequest)
			return
		}
		answer := h.shop.Do(r.Context(), m, value, query.Get("hold") != "")
		h.answered.Add(1)
		body, err := json.Marshal(answer)
		if err != nil {
			http.Error(w, "encode answer", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status(answer.Result))
		_, _ = w.Write(body)
	}
}

func status(r Result) int {
	switch {
	case r == Done:
		return http.StatusOK
	case r.Refused():
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

func (h *handler) held(w http.ResponseWriter, r *http.Request) {
	if err := h.shop.Holds().Held(r.Context(), r.URL.Query().Get("order")); err != nil {
		w.WriteHeader(http.StatusGatewayTimeout)
	}
}

func (h *handler) resume(_ http.ResponseWriter, r *http.Request) {
	h.shop.Holds().Resume(r.URL.Query().Get("order"))
}

func (h *handler) count(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(strconv.FormatInt(h.answered.Load(), 10)))
}
