package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Each instance has the count of its last heartbeat which counts calls, whether that counts messages or
// not, as TestMessages has it for these.
func TestCalls(t *testing.T) {
	s := temp(t)
	beat := func(instance string, at time.Duration, c incident.Calls, m incident.Messages) {
		t.Helper()
		h := incident.Heartbeat{Service: "orders", Instance: instance, At: caught, Every: 10 * time.Second, ReceivedAt: caught.Add(at), Calls: c, Messages: m}
		if err := s.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		list, err := s.Calls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var says []string
		for _, c := range list {
			says = append(says, fmt.Sprintf("%s %s@%s %d %v %d %v %v %v", c.Service, c.Table, c.Instance, c.Pending, c.Oldest, c.Undecided, c.OldestUndecided, c.Every, c.ReceivedAt.Sub(caught)))
		}
		if got := strings.Join(says, ", "); got != strings.Join(want, ", ") {
			t.Errorf("calls\n%s\nwant\n%s", got, want)
		}
	}
	c := incident.Calls{Table: "shop.belay_pending", Pending: 7, Oldest: time.Minute, Undecided: 2, OldestUndecided: time.Hour}
	m := incident.Messages{Table: "shop.belay_message", Waiting: 4}
	beat("1", time.Second, incident.Calls{}, m)
	want()
	beat("1", 2*time.Second, c, incident.Messages{}) // the count of messages has failed
	const first = "orders shop.belay_pending@1 7 1m0s 2 1h0m0s 10s 2s"
	want(first)
	beat("1", 3*time.Second, incident.Calls{}, m)
	want(first)
	beat("2", 4*time.Second, incident.Calls{Table: c.Table, Pending: 6}, m)
	want(first, "orders shop.belay_pending@2 6 0s 0 0s 10s 4s")
	beat("2", 33*time.Second, incident.Calls{Table: c.Table}, m)
	want("orders shop.belay_pending@2 0 0s 0 0s 10s 33s")
	list, err := s.Messages(t.Context())
	if err != nil || len(list) != 2 || list[0].ReceivedAt.Sub(caught) != 3*time.Second { // as before each heartbeat without them
		t.Errorf("messages %+v, %v", list, err)
	}
}
