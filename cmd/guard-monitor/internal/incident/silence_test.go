package incident_test

import (
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// TestSilenceMatches: a silence holds for the incidents that all its matchers fit, and for
// no others.
func TestSilenceMatches(t *testing.T) {
	i := incident.Incident{ID: "i-1", Service: "orders", Cause: incident.Failover, Cluster: "main"}
	for name, tt := range map[string]struct {
		want     bool
		matchers []incident.Matcher
	}{
		"the service":           {true, []incident.Matcher{{Field: incident.ByService, Value: "orders"}}},
		"another service":       {false, []incident.Matcher{{Field: incident.ByService, Value: "stock"}}},
		"a pattern":             {true, []incident.Matcher{{Field: incident.ByService, Value: "o*d*s"}}},
		"the pattern of others": {false, []incident.Matcher{{Field: incident.ByService, Value: "st*"}}},
		"a pattern as a name":   {false, []incident.Matcher{{Field: incident.ByService, Value: "o*", Exact: true}}},
		"all others":            {false, []incident.Matcher{{Field: incident.ByService, Value: "orders", Negate: true}}},
		"all but another":       {true, []incident.Matcher{{Field: incident.ByService, Value: "stock", Negate: true}}},
		"one of two": {false, []incident.Matcher{
			{Field: incident.ByService, Value: "orders"}, {Field: incident.ByCause, Value: string(incident.Bypass)}}},
		"both": {true, []incident.Matcher{
			{Field: incident.ByCluster, Value: "main"}, {Field: incident.ByCause, Value: string(incident.Failover)}}},
		"an unknown field": {false, []incident.Matcher{{Field: "colour", Value: "*"}}},
		"nothing":          {false, nil},
	} {
		if got := (incident.Silence{Matchers: tt.matchers}).Matches(i); got != tt.want {
			t.Errorf("%s: matches = %v, want %v", name, got, tt.want)
		}
	}
}
