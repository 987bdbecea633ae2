package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// Each instance has the count of its last heartbeat which counts, unless another one counted the same
// table so much later that the first may be gone.
func TestMessages(t *testing.T) {
	s := temp(t)
	beat := func(service, instance string, at time.Duration, m incident.Messages) {
		t.Helper()
		h := incident.Heartbeat{Service: service, Instance: instance, At: caught, Every: 10 * time.Second, ReceivedAt: caught.Add(at), Messages: m}
		if err := s.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want string) {
		t.Helper()
		list, err := s.Messages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var says []string
		for _, m := range list {
			says = append(says, fmt.Sprintf("%s %s@%s %d %v %d %d %d %v %v %v", m.Service, m.Table, m.Instance, m.Waiting, m.Oldest, m.Parked, m.Dead,
				m.Undecided, m.OldestDead, m.Every, m.ReceivedAt.Sub(caught)))
		}
		if got := strings.Join(says, ", "); got != want {
			t.Errorf("messages\n%s\nwant\n%s", got, want)
		}
	}
	want("")
	beat("orders", "1", 0, incident.Messages{})
	want("")
	m := incident.Messages{Table: "shop.belay_message", Waiting: 7, Oldest: time.Minute, Parked: 3, Dead: 2, Undecided: 1, OldestDead: time.Hour}
	beat("orders", "1", 1*time.Second, m)
	newer := incident.Messages{Table: m.Table, Waiting: 5}
	beat("orders", "2", 2*time.Second, newer)
	beat("orders", "3", 3*time.Second, incident.Messages{Table: "other.belay_message", Waiting: 1})
	beat("orders", "4", 4*time.Second, incident.Messages{}) // it relays none
	beat("mail", "1", 5*time.Second, m)
	const mail, first = "mail shop.belay_message@1 7 1m0s 3 2 1 1h0m0s 10s 5s, ", "orders shop.belay_message@1 7 1m0s 3 2 1 1h0m0s 10s 1s, "
	const other, second = "orders other.belay_message@3 1 0s 0 0 0 0s 10s 3s, ", "orders shop.belay_message@2 5 0s 0 0 0 0s 10s 2s"
	want(mail + other + first + second)
	beat("orders", "3", 6*time.Second, incident.Messages{}) // its count failed
	want(mail + other + first + second)
	beat("orders", "2", 31*time.Second, newer)
	want(mail + other + first + "orders shop.belay_message@2 5 0s 0 0 0 0s 10s 31s")
	beat("orders", "2", 32*time.Second, newer)
	want(mail + other + "orders shop.belay_message@2 5 0s 0 0 0 0s 10s 32s")
	beat("mail", "1", 33*time.Second, incident.Messages{Table: strings.Repeat("x", 5000)})
	list, err := s.Messages(t.Context())
	if err != nil || len(list) != 3 || len(list[0].Table) > store.MaxText || list[2].Table != m.Table {
		t.Errorf("messages %+v, %v", list, err)
	}
}
