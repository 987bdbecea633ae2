package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// apiRoutes are described in docs/api.md.
func (h *Handler) apiRoutes(mux *http.ServeMux) {
	st := h.cfg.Store
	for route, find := range map[string]finder{
		"GET overview":         h.apiOverview,
		"GET incidents":        listing((*query).incidents, st.Incidents, apiIncidentOf),
		"GET incidents/{id}":   h.apiIncident,
		"GET events":           listing((*query).events, st.Events, apiEventOf),
		"GET events/{id}":      h.apiEvent,
		"GET event":            h.apiEvent, // ?id=, see eventPath
		"GET timeline":         listing((*query).timeline, st.Timeline, apiEntryOf),
		"GET clusters":         h.apiClusters,
		"GET services":         h.apiServices,
		"GET messages":         h.apiMessages,
		"GET calls":            h.apiCalls,
		"GET silences":         listing((*query).page, st.AllSilences, apiSilenceOf),
		"GET audit":            listing((*query).page, st.AuditLines, func(l store.AuditLine) store.AuditLine { return l }),
		"POST silences":        h.addSilence,
		"DELETE silences/{id}": h.endSilence,

		"POST incidents/{id}/settle": h.settle,
	} {
		mux.HandleFunc(strings.Replace(route, " ", " /api/v1/", 1), h.answer(find))
	}
	mux.HandleFunc("GET /api/v1/live", h.live)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusNotFound, apiError{"there is no such route"})
	})
}

type apiError struct {
	Error string `json:"error"`
}

func (h *Handler) answer(find finder) http.HandlerFunc {
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

// listing returns what finds the rows that a filter chooses.
func listing[F, T, B any](filter func(*query) F, rows func(context.Context, F) ([]T, error), body func(T) B) finder {
	return func(ctx context.Context, q *query, _ *http.Request) (any, error) {
		f := filter(q)
		if q.err != nil {
			return nil, q.err
		}
		list, err := rows(ctx, f)
		return apiList[B]{convert(list, body)}, err
	}
}

func (h *Handler) apiOverview(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	d, err := h.findOverview(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return apiOverviewOf(d, h.cfg.intake()), nil
}

func (h *Handler) apiIncident(ctx context.Context, _ *query, r *http.Request) (any, error) {
	i, err := h.cfg.Store.Incident(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	settled, err := h.cfg.Store.Settlements(ctx, i.ID, shownTold)
	return apiWholeIncident{apiIncidentOf(i), convert(settled, func(x incident.Settlement) incident.Settlement { return x })}, err
}

func (h *Handler) apiEvent(ctx context.Context, _ *query, r *http.Request) (any, error) {
	ev, _, err := h.cfg.Store.Event(ctx, eventID(r))
	if err != nil {
		return nil, err
	}
	return apiEventOf(ev), nil
}

func (h *Handler) apiClusters(context.Context, *query, *http.Request) (any, error) {
	return apiList[apiCluster]{convert(h.health(time.Now()), apiClusterOf)}, nil
}

func (h *Handler) apiMessages(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	list, err := h.messages(ctx, time.Now())
	return apiList[apiMessages]{convert(list, apiMessagesOf)}, err
}

func (h *Handler) apiCalls(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	list, err := h.calls(ctx, time.Now())
	return apiList[apiCalls]{convert(list, apiCallsOf)}, err
}

func (h *Handler) apiServices(ctx context.Context, q *query, _ *http.Request) (any, error) {
	after, limit := q.text("after"), int(q.int("limit", 1, store.MaxRows, store.MaxRows))
	if q.err != nil {
		return nil, q.err
	}
	var d overviewData
	if err := h.findServices(ctx, &d); err != nil {
		return nil, err
	}
	list := d.Services // in order of name
	for len(list) > 0 && list[0].Service <= after {
		list = list[1:]
	}
	return apiList[apiService]{convert(list[:min(len(list), limit)], apiServiceOf)}, nil
}
