package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// act does what a form says to one incident. It returns what the audit line says besides.
type act func(r *http.Request, id, by string, at time.Time) (detail string, err error)

func (h *Handler) actRoutes(mux *http.ServeMux) {
	for path, f := range map[string]struct {
		action  string
		do      act
		several bool // also those that are chosen in a list
	}{
		"ack":       {"acknowledge", h.acknowledge, true},
		"unack":     {"unacknowledge", h.unacknowledge, false},
		"silence":   {actionSilence, h.silenceIncident, true},
		"unsilence": {actionEndSilence, h.endSilences, false},
		"settle":    {actionSettle, h.settleForm, false},
	} {
		mux.HandleFunc("POST /incidents/{id}/"+path, h.form(f.action, f.do))
		if f.several {
			mux.HandleFunc("POST /incidents/"+path, h.form(f.action, f.do))
		}
	}
}

func (h *Handler) acknowledge(r *http.Request, id, by string, at time.Time) (string, error) {
	return r.PostFormValue("note"), h.cfg.Store.Acknowledge(r.Context(), id, by, at)
}

func (h *Handler) unacknowledge(r *http.Request, id, _ string, at time.Time) (string, error) {
	return "", h.cfg.Store.Unacknowledge(r.Context(), id, at)
}

// silenceIncident silences one open incident, for as long as the form says.
func (h *Handler) silenceIncident(r *http.Request, id, by string, at time.Time) (string, error) {
	length, err := time.ParseDuration(r.PostFormValue("for"))
	if err != nil {
		return "", &queryError{"for", "want one such as 90m or 12h"}
	}
	i, err := h.cfg.Store.Incident(r.Context(), id)
	if err == nil && !i.State.Open() {
		err = incident.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	note := r.PostFormValue("note")
	_, err = h.cfg.Store.AddSilence(r.Context(), incident.Silence{
		Matchers: []incident.Matcher{only(id)}, Start: at, End: at.Add(length), Author: by, Comment: note,
	})
	return fmt.Sprintf("%v: %s", length, note), err
}

// only matches one incident.
func only(id string) incident.Matcher {
	return incident.Matcher{Field: incident.ByIncident, Value: id, Exact: true}
}

// endSilences ends the silences that hold for one incident alone.
func (h *Handler) endSilences(r *http.Request, id, by string, at time.Time) (string, error) {
	i, err := h.cfg.Store.Incident(r.Context(), id)
	if err != nil {
		return "", err
	}
	err = incident.ErrNotFound // unless there is one
	for _, s := range i.Silences {
		if !own(s, id) {
			continue
		}
		if err = h.cfg.Store.EndSilence(r.Context(), s.ID, by, at); err != nil {
			break
		}
	}
	return "", err
}

// own reports whether a silence holds for one incident alone.
func own(s incident.Silence, id string) bool {
	return len(s.Matchers) == 1 && s.Matchers[0] == only(id)
}

// chosenIDs returns the incidents that a form is about, and where to go on.
func (h *Handler) chosenIDs(r *http.Request) (ids []string, next string, err error) {
	if id := r.PathValue("id"); id != "" {
		return []string{id}, "/incidents/" + url.PathEscape(id), nil
	}
	ids = r.PostForm["id"]
	if len(ids) == 0 || len(ids) > pageRows {
		return nil, "", &queryError{"id", fmt.Sprintf("choose 1 to %d incidents", pageRows)}
	}
	return ids, local(r.PostFormValue("back")), nil
}

// each does something to incidents, with an audit line for each. Of several it leaves out those
// that are over.
func (h *Handler) each(r *http.Request, action string, do act, ids []string, by string) error {
	for _, id := range ids {
		detail, err := do(r, id, by, time.Now())
		if len(ids) > 1 && errors.Is(err, incident.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := h.audit(r, by, action, id, detail); err != nil {
			return err
		}
	}
	return nil
}

// finishForm redirects to the next page, or shows why a form was refused.
func (h *Handler) finishForm(w http.ResponseWriter, r *http.Request, next string, err error) {
	if err == nil {
		http.Redirect(w, r, h.prefix+next, http.StatusSeeOther) //nolint:gosec // local keeps it on this site
		return
	}
	v := h.view(r, "problem")
	v.Answer = true
	h.fail(r.Context(), v, err)
	h.render(w, r, v)
}
