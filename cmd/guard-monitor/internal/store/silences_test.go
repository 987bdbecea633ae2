package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func TestSilences(t *testing.T) {
	s := temp(t)
	apply(t, s, []incident.Incident{anIncident("a")})
	now := time.Now()
	silence := incident.Silence{
		Matchers: []incident.Matcher{{Field: incident.ByService, Value: "ord*"}},
		Start:    now.Add(-time.Minute), End: now.Add(time.Hour), Author: "ann", Comment: "drill",
	}
	endless := silence
	endless.End = time.Time{}
	if _, err := s.AddSilence(t.Context(), endless); !errors.Is(err, incident.ErrInvalidSilence) {
		t.Errorf("silence without an end: %v", err)
	}
	id, err := s.AddSilence(t.Context(), silence)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "a").Silences; len(got) != 1 || got[0].Comment != "drill" {
		t.Error("the silence does not hold")
	}
	if err := s.EndSilence(t.Context(), id, "bob", now); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "a"); got.Silenced() {
		t.Error("the silence holds after its end")
	}
	if err := s.EndSilence(t.Context(), id, "bob", now); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("end what has ended: %v", err)
	}
	if all, err := s.AllSilences(t.Context(), store.Page{}); err != nil || len(all) != 1 || all[0].EndedBy != "bob" || len(all[0].Matchers) != 1 {
		t.Errorf("all silences: %+v, %v", all, err)
	}
}
