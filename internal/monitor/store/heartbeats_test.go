package store_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/incident"
)

func TestHeartbeats(t *testing.T) {
	s := temp(t)
	beat := func(instance string, at time.Duration) {
		t.Helper()
		h := incident.Heartbeat{Service: "orders", Instance: instance, At: caught, Every: 10 * time.Second, ReceivedAt: caught.Add(at)}
		if err := s.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	beat("1", time.Second)
	beat("2", 3*time.Second)
	beat("2", 2*time.Second) // late
	got, err := s.Heartbeats(t.Context())
	if err != nil || len(got) != 1 || got[0].Instance != "2" || !got[0].ReceivedAt.Equal(caught.Add(3*time.Second)) || got[0].Every != 10*time.Second {
		t.Errorf("last heartbeats: %+v, %v", got, err)
	}
	beat("2", -time.Hour) // the clock was set back
	if got, err = s.Heartbeats(t.Context()); err != nil || len(got) != 1 || !got[0].ReceivedAt.Equal(caught.Add(-time.Hour)) {
		t.Errorf("last heartbeats after the clock was set back: %+v, %v", got, err)
	}
	if err := s.ForgetService(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Heartbeats(t.Context()); len(got) != 0 {
		t.Errorf("%+v is not forgotten", got)
	}
}
