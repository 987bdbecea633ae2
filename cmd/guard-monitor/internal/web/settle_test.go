package web_test

import (
	"net/http"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// People settle operations in doubt on the page, and programs by the API; both leave an
// audit line, and the page shows what was settled by whom.
func TestSettle(t *testing.T) {
	s := newSite(t, withWrites)
	for _, key := range []string{"order:1", "order:<2>", "order:3"} {
		ev := event(key[6:])
		ev.Key, ev.Verdict, ev.Outcome, ev.Count = key, notify.VerdictUnknownCommit, notify.OutcomeUnknown, 1
		s.add(t, ev)
		s.explain(t, func(i *incident.Incident) { i.Cause = incident.UnknownCommit })
	}
	mustContain(t, s.page(t, "/incidents/"+incidentID), "Operations in doubt", "it did not take effect", `value="order:&lt;2&gt;"`, "all of them (3)", `name="all" value="3"`)

	const form, api = "/incidents/" + incidentID + "/settle", "/api/v1/incidents/" + incidentID + "/settle"
	for _, tt := range []struct {
		path, body string
		want       int
	}{
		{form, "by=bob&key=order:1", http.StatusBadRequest},
		{form, "key=order:1&outcome=committed", http.StatusBadRequest},
		{form, "by=bob&key=order:9&outcome=committed", http.StatusNotFound},
		{form, "by=bob&key=order:1&outcome=rolled_back&note=no+<row>", http.StatusSeeOther},
		{api, `{"by":"eve","outcome":"committed"}`, http.StatusBadRequest},
		{api, `{"by":"eve","key":"order:3","all":2,"outcome":"committed"}`, http.StatusBadRequest},
		{api, `{"by":"eve","key":"order:3","outcome":"unknown"}`, http.StatusBadRequest},
		{api, `{"by":"eve","key":"order:3","outcome":"committed","note":"the row is there"}`, http.StatusOK},
		{form, "by=eve&outcome=rolled_back", http.StatusBadRequest},
		{form, "by=eve&key=&all=&outcome=rolled_back", http.StatusBadRequest},
		{form, "by=eve&key=&all=3&outcome=rolled_back", http.StatusConflict},
		{api, `{"by":"eve","all":true,"outcome":"rolled_back"}`, http.StatusBadRequest},
		{api, `{"by":"eve","all":3,"outcome":"rolled_back"}`, http.StatusConflict},
		{api, `{"by":"eve","all":1,"outcome":"rolled_back"}`, http.StatusOK},
		{api, `{"by":"eve","all":1,"outcome":"rolled_back"}`, http.StatusNotFound},
	} {
		if w := s.do(t, http.MethodPost, tt.path, tt.body); w.Code != tt.want {
			t.Errorf("POST %s %s: %d, want %d: %.300s", tt.path, tt.body, w.Code, tt.want, w.Body)
		}
	}
	settled := s.page(t, "/events/1")
	mustContain(t, settled, "it was not committed", "rolled back")
	mustNotContain(t, settled, "Nobody knows", "<dd>unknown</dd>")
	page := s.page(t, "/incidents/"+incidentID)
	mustContain(t, page, "<code>order:1</code>", "operations: 1, by bob", "no &lt;row&gt;", "the row is there")
	mustNotContain(t, page, "stays open until")
	mustContain(t, s.page(t, "/incidents/"+incidentID, "Accept-Language", "zh"), "未生效", "由 bob 核定")
	mustContain(t, s.get(t, "/api/v1/audit").Body.String(), `"action":"settle"`, `key \"order:1\": rolled_back: no `, "all keys (operations: 1): rolled_back")
	mustContain(t, s.get(t, "/api/v1/incidents/"+incidentID).Body.String(), `"settlements":[{`, `"note":"the row is there"`, `"unknowns":0`)
}
