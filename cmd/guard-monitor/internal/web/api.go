package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// apiRoutes are described in docs/api.md.
func (h *Handler) apiRoutes(mux *http.ServeMux) {
	for route, answer := range map[string]func(context.Context, *query, *http.Request) (any, error){
		"GET overview":         h.apiOverview,
		"GET incidents":        h.apiIncidents,
		"GET incidents/{id}":   h.apiIncident,
		"GET events":           h.apiEvents,
		"GET events/{id}":      h.apiEvent,
		"GET event":            h.apiEvent, // ?id=, see eventPath
		"GET timeline":         h.apiTimeline,
		"GET clusters":         h.apiClusters,
		"GET services":         h.apiServices,
		"GET silences":         h.apiSilences,
		"GET audit":            h.apiAudit,
		"POST silences":        h.addSilence,
		"DELETE silences/{id}": h.endSilence,
	} {
		mux.HandleFunc(strings.Replace(route, " ", " /api/v1/", 1), h.answer(answer))
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
		v, err := find(ctx, &query{values: r.URL.Query(), location: time.UTC}, r)
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
	return apiList[apiIncident]{convert(list, apiIncidentOf)}, err
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
	return apiList[apiEvent]{convert(list, apiEventOf)}, err
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
		Cluster: q.text("cluster"), Shard: q.text("shard"), Node: q.text("node"), Kinds: chosen(q, "kind", watch.Kinds),
		From: q.time("from"), To: q.time("to"), Before: q.int("before", 0, 1<<62, 0), Limit: q.limit(),
	}
	if q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.Timeline(ctx, f)
	return apiList[apiEntry]{convert(list, apiEntryOf)}, err
}

func (h *Handler) apiClusters(context.Context, *query, *http.Request) (any, error) {
	return apiList[apiCluster]{convert(h.health(time.Now()), apiClusterOf)}, nil
}

func (h *Handler) apiServices(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	var d overviewData
	err := h.findServices(ctx, &d)
	return apiList[apiService]{convert(d.Services, apiServiceOf)}, err
}

func (h *Handler) apiSilences(ctx context.Context, q *query, _ *http.Request) (any, error) {
	n := q.limit()
	if q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.AllSilences(ctx, n)
	return apiList[apiSilence]{convert(list, apiSilenceOf)}, err
}

func (h *Handler) apiAudit(ctx context.Context, q *query, _ *http.Request) (any, error) {
	n := q.limit()
	if q.err != nil {
		return nil, q.err
	}
	list, err := h.cfg.Store.AuditLines(ctx, n)
	return apiList[store.AuditLine]{convert(list, func(l store.AuditLine) store.AuditLine { return l })}, err
}
