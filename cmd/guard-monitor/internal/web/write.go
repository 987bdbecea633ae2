package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// errNobody is returned when an action needs a name and the request has none.
var errNobody = errors.New("say who you are: the name is empty")

// action does what a form of a page asks for. It returns the page to show next.
type action func(ctx context.Context, r *http.Request) (next string, err error)

// form returns the handler of an action.
func (h *Handler) form(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, "the form cannot be read", http.StatusBadRequest)
			return
		}
		next, err := do(r.Context(), r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		http.Redirect(w, r, h.prefix+next, http.StatusSeeOther)
	}
}

// refuse answers with a page that says what is wrong.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	v := h.view(r, "problem")
	v.Status, v.Answer = h.statusOf(r.Context(), err), true
	if v.Status == http.StatusBadRequest {
		v.Problem = err.Error()
	}
	h.render(w, r, v)
}

func (h *Handler) statusOf(ctx context.Context, err error) int {
	var bad *queryError
	switch {
	case errors.As(err, &bad), errors.Is(err, incident.ErrInvalidSilence), errors.Is(err, errNobody):
		return http.StatusBadRequest
	case errors.Is(err, incident.ErrNotFound):
		return http.StatusNotFound
	}
	h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "action failed", slog.Any("error", err))
	return http.StatusServiceUnavailable
}

// who returns the name of the authenticated user, or else the name that was given.
func who(r *http.Request, given string) (string, error) {
	name := cmp.Or(user(r.Context()), strings.TrimSpace(given))
	switch {
	case name == "":
		return "", errNobody
	case len(name) > store.MaxText:
		return "", &queryError{"by", fmt.Sprintf("is longer than %d bytes", store.MaxText)}
	}
	return name, nil
}

// audit stores and logs what was done. A name that was not authenticated is marked.
func (h *Handler) audit(r *http.Request, by, what, subject, detail string) error {
	if user(r.Context()) == "" {
		by += " (not authenticated)"
	}
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	h.cfg.Logger.LogAttrs(r.Context(), slog.LevelInfo, "audit", slog.String("who", by), slog.String("remote", remote),
		slog.String("action", what), slog.String("subject", subject))
	// The line must be stored even if the client has gone.
	return h.cfg.Store.Audit(context.WithoutCancel(r.Context()), store.AuditLine{
		At: time.Now(), Who: by, Remote: remote, Action: what, Subject: subject, Detail: detail,
	})
}

func (h *Handler) acknowledge(ctx context.Context, r *http.Request) (string, error) {
	by, err := who(r, r.PostFormValue("by"))
	if err != nil {
		return "", err
	}
	id := r.PathValue("id")
	if err := h.cfg.Store.Acknowledge(ctx, id, by, time.Now()); err != nil {
		return "", err
	}
	return "/incidents/" + id, h.audit(r, by, "acknowledge", id, "")
}

func (h *Handler) unacknowledge(ctx context.Context, r *http.Request) (string, error) {
	by, err := who(r, r.PostFormValue("by"))
	if err != nil {
		return "", err
	}
	id := r.PathValue("id")
	if err := h.cfg.Store.Unacknowledge(ctx, id, time.Now()); err != nil {
		return "", err
	}
	return "/incidents/" + id, h.audit(r, by, "unacknowledge", id, "")
}

// silence adds a silence as the form on an incident's page describes it.
func (h *Handler) silence(ctx context.Context, r *http.Request) (string, error) {
	i, err := h.cfg.Store.Incident(ctx, r.PostFormValue("incident"))
	if err != nil {
		return "", err
	}
	q := &query{values: r.PostForm, location: h.cfg.Location}
	hours := q.int("hours", 1, 24*366, 1)
	scope := one(q, "scope", []string{"alike", "service", "only"}, "alike")
	if q.err != nil {
		return "", q.err
	}
	s := incident.Silence{Comment: q.text("comment")}
	service := incident.Matcher{Field: incident.ByService, Value: i.Service, Exact: true} // it may be called *
	switch scope {
	case "alike":
		s.Matchers = []incident.Matcher{service, {Field: incident.ByCause, Value: string(i.Cause)}}
	case "service":
		s.Matchers = []incident.Matcher{service}
	default:
		s.Matchers = []incident.Matcher{{Field: incident.ByIncident, Value: i.ID}}
	}
	_, err = h.addSilence(ctx, r, s, time.Duration(hours)*time.Hour, r.PostFormValue("by"))
	return "/incidents/" + i.ID, err
}

func (h *Handler) addSilence(ctx context.Context, r *http.Request, s incident.Silence, length time.Duration, given string) (int64, error) {
	by, err := who(r, given)
	if err != nil {
		return 0, err
	}
	s.Author, s.Start = by, time.Now()
	s.End = s.Start.Add(length)
	id, err := h.cfg.Store.AddSilence(ctx, s)
	if err != nil {
		return 0, err
	}
	return id, h.audit(r, by, "silence", strconv.FormatInt(id, 10), fmt.Sprintf("%v for %v: %s", s.Matchers, length, s.Comment))
}

func (h *Handler) endSilence(_ context.Context, r *http.Request) (string, error) {
	return "/silences", h.endsSilence(r, r.PostFormValue("by"))
}

// endsSilence ends the silence that the path names.
func (h *Handler) endsSilence(r *http.Request, given string) error {
	by, err := who(r, given)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return incident.ErrNotFound
	}
	if err := h.cfg.Store.EndSilence(r.Context(), id, by, time.Now()); err != nil {
		return err
	}
	return h.audit(r, by, "end silence", strconv.FormatInt(id, 10), "")
}
