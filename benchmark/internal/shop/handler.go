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

// newHandler returns an instance as an HTTP service:
//
//	POST /METHOD?order=NO or ?item=ID   the operation; hold=1 lets it stand still
//	GET  /held?order=NO                 answers when the operation stands still
//	POST /resume?order=NO               lets it go on
//	GET  /answered                      how many operations have been answered
//	GET  /healthz, /metrics, /debug/pprof/
func newHandler(s *Service) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, c := range s.belay.Collectors() {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	var answered atomic.Int64
	mux := http.NewServeMux()
	for _, m := range Methods() {
		mux.HandleFunc("POST /"+string(m), func(w http.ResponseWriter, r *http.Request) {
			s.serve(w, r, m)
			answered.Add(1)
		})
	}
	mux.HandleFunc("GET /held", func(w http.ResponseWriter, r *http.Request) {
		if err := s.holds.Held(r.Context(), r.URL.Query().Get("order")); err != nil {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	})
	mux.HandleFunc("POST /resume", func(_ http.ResponseWriter, r *http.Request) { s.holds.Resume(r.URL.Query().Get("order")) })
	mux.HandleFunc("GET /answered", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strconv.FormatInt(answered.Load(), 10)))
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	return mux, nil
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request, m Method) {
	query := r.URL.Query()
	value := query.Get(m.Parameter())
	if value == "" {
		http.Error(w, "parameter "+m.Parameter()+" is missing", http.StatusBadRequest)
		return
	}
	answer := s.Do(r.Context(), m, value, query.Get("hold") != "")
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, "encode answer", http.StatusInternalServerError)
		return
	}
	status := http.StatusServiceUnavailable
	switch {
	case answer.Result == Done:
		status = http.StatusOK
	case answer.Result.Refused():
		status = http.StatusConflict
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
