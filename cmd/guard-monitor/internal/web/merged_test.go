package web_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// An incident whose events moved to another one is not one of 0 failures and an unknown
// cause: the pages say which incident it became.
func TestMergedIncident(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.add(t, event("one"))
	s.explain(t)
	merged := func(i *incident.Incident) {
		i.ID, i.Key, i.Cause, i.State, i.ResolvedAt, i.MergedInto = otherID, "k2", incident.Unknown, incident.Resolved, i.LastAt, incidentID
	}
	if err := s.store.Apply(t.Context(), []incident.Incident{anIncident(merged)}, nil); err != nil {
		t.Fatal(err)
	}
	for path, lang := range map[string]string{"/incidents?show=resolved": "en", "/incidents/" + otherID: "en", "/incidents?show=all": "zh"} {
		page := s.page(t, path, "Accept-Language", lang)
		want := `Merged into <a href="/incidents/` + incidentID + `">Failover · orders</a>`
		if lang == "zh" {
			want = `已并入 <a href="/incidents/` + incidentID + `">故障转移 · orders</a>`
		}
		mustContain(t, page, want)
		mustNotContain(t, page, "failures: 0", "does not suffice", "0 次故障", "证据不足")
	}
	mustContain(t, s.page(t, "/timeline"), "Incident merged into another: Cause not known")

	// The other one may be gone.
	gone := func(i *incident.Incident) { merged(i); i.MergedInto = "gone" }
	if err := s.store.Apply(t.Context(), []incident.Incident{anIncident(gone)}, nil); err != nil {
		t.Fatal(err)
	}
	page := s.page(t, "/incidents?show=resolved")
	mustContain(t, page, `Merged into <a href="/incidents/gone">gone</a>`)
	if strings.Contains(page, "failures: 0") {
		t.Error("it has 0 failures")
	}
}
