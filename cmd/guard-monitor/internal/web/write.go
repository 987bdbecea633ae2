package web

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// form returns the handler of a form by which somebody acts on incidents.
func (h *Handler) form(action string, do act) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, "the form cannot be read", http.StatusBadRequest)
			return
		}
		by, err := who(r, r.PostFormValue("by"))
		var ids []string
		var next string
		if err == nil {
			ids, next, err = h.chosenIDs(r)
		}
		if err == nil {
			err = h.each(r, action, do, ids, by)
		}
		h.finishForm(w, r, next, err)
	}
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
	h.cfg.Logger.LogAttrs(r.Context(), slog.LevelInfo, "audit", slog.String("who", by), slog.String("remote", r.RemoteAddr),
		slog.String("action", what), slog.String("subject", subject))
	// The line is stored even if the client has gone.
	return h.cfg.Store.Audit(context.WithoutCancel(r.Context()), store.AuditLine{
		At: time.Now(), Who: by, Remote: r.RemoteAddr, Action: what, Subject: subject, Detail: detail,
	})
}
