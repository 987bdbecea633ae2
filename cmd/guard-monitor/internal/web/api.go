package web

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// apiRoutes are described in docs/api.md.
func (h *Handler) apiRoutes(mux *http.ServeMux) {
	for path, find := range map[string]func(context.Context, *query, *http.Request) (any, error){
		"overview":       h.apiOverview,
		"incidents":      h.apiIncidents,
		"incidents/{id}": h.apiIncident,
		"events":         h.apiEvents,
		"events/{id}":    h.apiEvent,
		"event":          h.apiEvent, // ?id=, see eventPath
		"timeline":       h.apiTimeline,
		"clusters":       h.apiClusters,
		"services":       h.apiServices,
		"silences":       h.apiSilences,
		"audit":          h.apiAudit,
	} {
		mux.HandleFunc("GET /api/v1/"+path, h.answer(find))
	}
	for route, do := range map[string]func(context.Context, *http.Request) (any, error){
		"POST /api/v1/incidents/{id}/ack":   h.apiAck,
		"DELETE /api/v1/incidents/{id}/ack": h.apiUnack,
		"POST /api/v1/silences":             h.apiSilence,
		"DELETE /api/v1/silences/{id}":      h.apiEndSilence,
		"DELETE /api/v1/services/{service}": h.apiForget,
	} {
		mux.HandleFunc(route, h.change(do))
	}
	mux.HandleFunc("GET /api/v1/live", h.live)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusNotFound, apiError{"there is no such route"})
	})
}

type apiError struct {
	Error string `json:"error"`
}

// reply writes v. JSON escapes what could be markup, and nosniff keeps browsers
// from looking for it.
func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

func (h *Handler) answer(find func(context.Context, *query, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		defer cancel()
		q := &query{values: r.URL.Query(), location: time.UTC}
		v, err := find(ctx, q, r)
		h.conclude(ctx, w, v, err)
	}
}

func (h *Handler) change(do func(context.Context, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		v, err := do(r.Context(), r)
		h.conclude(r.Context(), w, v, err)
	}
}

func (h *Handler) conclude(ctx context.Context, w http.ResponseWriter, v any, err error) {
	if err == nil {
		reply(w, http.StatusOK, v)
		return
	}
	code := h.statusOf(ctx, err)
	switch code {
	case http.StatusNotFound:
		reply(w, code, apiError{"not found"})
	case http.StatusServiceUnavailable: // its words may name files and servers
		reply(w, code, apiError{"the store does not answer; the log says why"})
	default:
		reply(w, code, apiError{err.Error()})
	}
}

// limit is how many rows a client asks for.
func (q *query) limit() int { return int(q.int("limit", 1, store.MaxRows, store.DefaultRows)) }

func (h *Handler) apiOverview(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	d, err := h.findOverview(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return apiOverviewOf(d, h.cfg.intake()), nil
}

func (h *Handler) apiIncidents(ctx context.Context, q *query, _ *http.Request) (any, error) {
	f := q.incidents()
	if f.Limit = q.limit(); q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.Incidents(ctx, f)
	return apiList[apiIncidentBody]{convert(list, apiIncidentOf)}, err
}

func (h *Handler) apiIncident(ctx context.Context, _ *query, r *http.Request) (any, error) {
	i, err := h.cfg.Store.Incident(ctx, r.PathValue("id"))
	return apiIncidentOf(i), err
}

func (h *Handler) apiEvents(ctx context.Context, q *query, _ *http.Request) (any, error) {
	f := q.events()
	if f.Limit = q.limit(); q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.Events(ctx, f)
	return apiList[apiEventBody]{convert(list, apiEventOf)}, err
}

func (h *Handler) apiEvent(ctx context.Context, _ *query, r *http.Request) (any, error) {
	ev, _, err := h.cfg.Store.Event(ctx, eventID(r))
	if err != nil {
		return nil, err
	}
	return apiEventOf(ev), nil
}

func (h *Handler) apiTimeline(ctx context.Context, q *query, _ *http.Request) (any, error) {
	f := store.TimelineFilter{
		Cluster: q.text("cluster"), Shard: q.text("shard"), Node: q.text("node"), Kinds: chosen(q, "kind", kinds),
		From: q.time("from"), To: q.time("to"), Before: q.int("before", 0, 1<<62, 0), Limit: q.limit(),
	}
	if q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.Timeline(ctx, f)
	return apiList[apiEntryBody]{convert(list, apiEntryOf)}, err
}

func (h *Handler) apiClusters(context.Context, *query, *http.Request) (any, error) {
	return apiList[apiClusterBody]{convert(h.health(time.Now()), apiClusterOf)}, nil
}

func (h *Handler) apiServices(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	var d overviewData
	err := h.findServices(ctx, &d, time.Now())
	return apiList[apiServiceBody]{convert(d.Services, apiServiceOf)}, err
}

func (h *Handler) apiSilences(ctx context.Context, q *query, _ *http.Request) (any, error) {
	n := q.limit()
	if q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.AllSilences(ctx, n)
	return apiList[apiSilenceBody]{convert(list, apiSilenceOf)}, err
}

func (h *Handler) apiAudit(ctx context.Context, q *query, _ *http.Request) (any, error) {
	n := q.limit()
	if q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.AuditLines(ctx, n)
	return apiList[apiAuditBody]{convert(list, apiAuditOf)}, err
}
