package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// actSite has two open incidents, and one that is over.
func actSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, withWrites)
	over := func(i *incident.Incident) {
		i.ID, i.Key, i.State, i.ResolvedAt = overID, "over", incident.Resolved, i.LastAt
	}
	list := []incident.Incident{anIncident(), anIncident(func(i *incident.Incident) { i.ID, i.Key, i.Service = otherID, "other", "payments" }), anIncident(over)}
	if err := s.store.Apply(t.Context(), list, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

var overID = incidentID[:35] + "c"

// Who silences or acknowledges an incident on its page leaves a note, which the page shows.
func TestNotes(t *testing.T) {
	t.Parallel()
	s := actSite(t)
	page := "/incidents/" + incidentID
	for _, tt := range []struct {
		path, body string
		want       int
	}{
		{page + "/ack", "by=bob&note=looking+at+<redis>", http.StatusSeeOther},
		{page + "/silence", "by=eve&for=4h", http.StatusBadRequest},
		{page + "/silence", "by=eve&for=soon&note=x", http.StatusBadRequest},
		{page + "/silence", "for=4h&note=x", http.StatusBadRequest},
		{"/incidents/none/silence", "by=eve&for=4h&note=x", http.StatusNotFound},
		{"/incidents/" + overID + "/silence", "by=eve&for=4h&note=x", http.StatusNotFound},
		{page + "/silence", "by=eve&for=4h&note=until+the+new+node+is+there", http.StatusSeeOther},
	} {
		if w := s.do(t, http.MethodPost, tt.path, tt.body); w.Code != tt.want {
			t.Errorf("POST %s %s: %d, want %d: %.300s", tt.path, tt.body, w.Code, tt.want, w.Body)
		}
	}
	mustContain(t, s.page(t, page), "bob is on it", "looking at &lt;redis&gt;", "silenced by eve", "until the new node is there", "What people did")
	mustContain(t, s.page(t, page, "Accept-Language", "zh"), "操作记录", "确认处理", "静默")
	list, err := s.store.AllSilences(t.Context(), store.Page{})
	if err != nil || len(list) != 1 || list[0].End.Sub(list[0].Start).Hours() != 4 || !list[0].Matches(anIncident()) ||
		list[0].Matches(anIncident(func(i *incident.Incident) { i.ID = otherID })) {
		t.Errorf("silences %+v, %v: want one of 4 h for the incident alone", list, err)
	}

	for _, want := range []int{http.StatusSeeOther, http.StatusNotFound} {
		if w := s.do(t, http.MethodPost, page+"/unsilence", "by=bob"); w.Code != want {
			t.Errorf("end the silence: %d, want %d", w.Code, want)
		}
	}
	mustNotContain(t, s.page(t, page), "silenced by eve until")
	mustContain(t, s.get(t, "/api/v1/audit").Body.String(), `"action":"end silence"`, `"action":"silence"`, `"detail":"4h0m0s: until the new node is there"`)
}

// Several incidents of a list are acknowledged or silenced at once. One that ended meanwhile is
// left out.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	s := actSite(t)
	mustContain(t, s.page(t, "/incidents"), `<input type="checkbox" name="id" value="`+otherID+`" form="several">`, `id="several"`)
	mustNotContain(t, s.page(t, "/incidents?show=resolved"), `type="checkbox"`, `id="several"`)
	all := url.Values{"id": {incidentID, otherID, overID}, "by": {"bob"}, "note": {"one cause"}, "for": {"1h"}, "back": {"/incidents?service=x"}}
	for _, action := range []string{"ack", "silence"} {
		w := s.do(t, http.MethodPost, "/incidents/"+action, all.Encode())
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/incidents?service=x" {
			t.Errorf("%s: %d, to %s", action, w.Code, w.Header().Get("Location"))
		}
	}
	page := s.page(t, "/incidents")
	if acked, silenced := strings.Count(page, "bob is on it"), strings.Count(page, "silenced by bob"); acked != 2 || silenced != 2 {
		t.Errorf("%d acknowledged, %d silenced, want 2 and 2", acked, silenced)
	}
	lines, err := s.store.AuditLines(t.Context(), store.Page{})
	if err != nil || len(lines) != 4 {
		t.Errorf("audit %+v, %v: want 4 lines", lines, err)
	}
	for _, form := range []string{"by=bob&note=x", "by=bob&note=x" + strings.Repeat("&id=a", 51)} {
		if w := s.do(t, http.MethodPost, "/incidents/ack", form); w.Code != http.StatusBadRequest {
			t.Errorf("%.30s: %d, want 400", form, w.Code)
		}
	}
	readOnly := newSite(t)
	if w := readOnly.do(t, http.MethodPost, "/incidents/ack", all.Encode()); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("read-only: %d", w.Code)
	}
	readOnly.explain(t)
	mustNotContain(t, readOnly.page(t, "/incidents"), `type="checkbox"`)
}
