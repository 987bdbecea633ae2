package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
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
	if _, err := s.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Heartbeats(t.Context()); len(got) != 0 {
		t.Errorf("%+v is not forgotten", got)
	}
}

func TestClocks(t *testing.T) {
	s := temp(t)
	beat := func(instance string, at, received time.Duration) {
		t.Helper()
		h := incident.Heartbeat{Service: "orders", Instance: instance, At: caught.Add(at), ReceivedAt: caught.Add(received), Every: 10 * time.Second}
		if err := s.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	beat("right", 0, 10*time.Millisecond)
	beat("right", 10*time.Second, 10*time.Second+20*time.Millisecond)
	beat("late", 0, 30*time.Second)
	beat("late", 10*time.Second, 40*time.Second+100*time.Millisecond)
	beat("early", 30*time.Second, 0)
	beat("early", 40*time.Second, 10*time.Second)
	beat("once", 0, 30*time.Second)
	beat("held up", 0, 60*time.Second) // by a broker, and then delivered together
	beat("held up", 10*time.Second, 60*time.Second)
	beat("set right", 0, 30*time.Second)
	beat("set right", 40*time.Second, 40*time.Second)
	beat("right again", 0, 30*time.Second)
	beat("right again", 40*time.Second, 40*time.Second)
	beat("right again", 50*time.Second, 50*time.Second)
	list, err := s.Clocks(t.Context(), time.Second)
	var got []incident.Clock
	var unsure []string
	for _, c := range list {
		if c.Agreed {
			got = append(got, c)
		} else {
			unsure = append(unsure, c.Instance)
		}
	}
	if fmt.Sprint(unsure) != "[held up set right]" {
		t.Errorf("heartbeats of %q disagree", unsure)
	}
	want := map[string]time.Duration{"late": 30*time.Second + 100*time.Millisecond, "early": -30 * time.Second}
	if err != nil || len(got) != len(want) {
		t.Fatalf("Clocks = %+v, %v, want %v", got, err, want)
	}
	for _, c := range got {
		if c.Behind != want[c.Instance] || c.Service != "orders" {
			t.Errorf("%+v, want %v", c, want[c.Instance])
		}
	}
}
