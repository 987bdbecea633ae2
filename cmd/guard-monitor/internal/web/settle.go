package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

const actionSettle = "settle"

// settleForm settles operations of an incident as the form says that somebody has found out.
func (h *Handler) settleForm(r *http.Request, id, by string, at time.Time) (detail string, err error) {
	x := incident.Settlement{At: at, Key: r.PostFormValue("key"), Outcome: notify.Outcome(r.PostFormValue("outcome")),
		By: by, Note: r.PostFormValue("note")}
	if x.Key == "" {
		if x.Operations, err = strconv.ParseInt(r.PostFormValue("all"), 10, 64); err != nil {
			return "", &queryError{"all", "want the number of operations that are in doubt"}
		}
	}
	return settlementDetail(x), h.cfg.Store.Settle(r.Context(), id, x)
}

// settleRequest is the body of a request to settle operations. Either Key or All, which is
// how many are in doubt, is required.
type settleRequest struct {
	Key     string         `json:"key"`
	All     int64          `json:"all"`
	Outcome notify.Outcome `json:"outcome"`
	Note    string         `json:"note"`
	By      string         `json:"by"`
}

// settle settles operations of the incident that the path names, as the body says.
func (h *Handler) settle(ctx context.Context, _ *query, r *http.Request) (any, error) {
	var in settleRequest
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || (in.All > 0) == (in.Key != "") {
		return nil, &queryError{"body", "want a JSON object with the fields of docs/api.md"}
	}
	by, err := who(r, in.By)
	if err != nil {
		return nil, err
	}
	x := incident.Settlement{At: time.Now(), Key: in.Key, Operations: in.All, Outcome: in.Outcome, By: by, Note: in.Note}
	id := r.PathValue("id")
	if err := h.cfg.Store.Settle(ctx, id, x); err != nil {
		return nil, err
	}
	return apiDone{OK: true}, h.audit(r, by, actionSettle, id, settlementDetail(x))
}

// settlementDetail is what the audit line says of a settlement.
func settlementDetail(x incident.Settlement) string {
	key := fmt.Sprintf("all keys (operations: %d)", x.Operations)
	if x.Key != "" {
		key = fmt.Sprintf("key %q", x.Key)
	}
	return fmt.Sprintf("%s: %s: %s", key, x.Outcome, x.Note)
}
