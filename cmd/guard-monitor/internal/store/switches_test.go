package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// reports stores heartbeats, each a second after the one before.
type reports struct {
	t     *testing.T
	store *store.Store
	now   time.Time
}

func (r *reports) say(instance string, record incident.Record) {
	r.t.Helper()
	r.now = r.now.Add(time.Second)
	h := incident.Heartbeat{Service: "orders", Instance: instance, At: r.now, Every: time.Minute, ReceivedAt: r.now, Record: record}
	if err := r.store.AddHeartbeat(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
}

// switches are all that are known, the oldest first, as "epoch from>to seen-over" in seconds.
func (r *reports) switches() string {
	r.t.Helper()
	list, err := r.store.Switches(r.t.Context(), time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	var says []string
	for _, s := range list {
		over := ""
		if !s.OverAt.IsZero() {
			over = fmt.Sprint(s.OverAt.Sub(caught).Seconds())
		}
		says = append([]string{fmt.Sprintf("%d %s>%s %v-%s", s.Epoch, s.From, s.To, s.SeenAt.Sub(caught).Seconds(), over)}, says...)
	}
	return strings.Join(says, ", ")
}

func (r *reports) want(want string) {
	r.t.Helper()
	if got := r.switches(); got != want {
		r.t.Errorf("switches %q, want %q", got, want)
	}
}

func moving(epoch int64, from, to string) incident.Record {
	return incident.Record{Epoch: epoch, From: from, To: to, By: "alice", Left: 40 * time.Second}
}

func settled(r incident.Record) incident.Record {
	r.Settled, r.Left = true, 0
	return r
}

func TestSwitches(t *testing.T) {
	r := &reports{t, temp(t), caught}
	r.say("a", incident.Record{})
	r.say("b", settled(moving(1, "redis", "redis")))
	r.want("") // the first record is no switch
	there, back := moving(2, "redis", "sql"), moving(3, "sql", "redis")
	r.say("a", there)
	r.say("b", there)
	r.want("2 redis>sql 3-")
	r.say("b", settled(there))
	r.say("a", settled(there))
	r.want("2 redis>sql 3-5")
	r.say("a", back)
	r.say("b", settled(there)) // b is behind
	r.say("b", moving(4, "redis", "sql"))
	r.want("2 redis>sql 3-5, 3 sql>redis 7-9, 4 redis>sql 9-") // the third was given up
	r.say("a", back)
	r.say("b", settled(moving(5, "sql", "sql"))) // times change once the fourth is over; no locks move
	r.want("2 redis>sql 3-5, 3 sql>redis 7-9, 4 redis>sql 9-11")
	list, err := r.store.Switches(t.Context(), caught.Add(8*time.Second))
	if err != nil || len(list) != 1 || list[0].By != "alice" || list[0].Service != "orders" {
		t.Errorf("since 8 s: %+v, %v", list, err)
	}
}

// TestSwitchBeforeTheFirstReport: a service that has been where it is says that it is settled.
// That is a switch only if it was elsewhere before.
func TestSwitchBeforeTheFirstReport(t *testing.T) {
	r := &reports{t, temp(t), caught}
	last := settled(moving(7, "redis", "sql"))
	r.say("a", incident.Record{}) // of an older version
	r.say("b", last)
	r.say("a", last)
	r.want("")
	r.say("a", settled(moving(8, "sql", "redis"))) // the monitor was away
	r.want("8 sql>redis 4-4")
}

// TestSwitchAfterALostRecord: a service whose record is gone counts from 1 again.
func TestSwitchAfterALostRecord(t *testing.T) {
	r := &reports{t, temp(t), caught}
	r.say("a", moving(9, "redis", "sql"))
	r.now = r.now.Add(time.Hour)
	r.say("b", moving(2, "redis", "sql"))
	r.want("9 redis>sql 1-3602, 2 redis>sql 3602-")
}

func TestSwitching(t *testing.T) {
	r := &reports{t, temp(t), caught}
	record := moving(2, "redis", "sql")
	r.say("b", incident.Record{})
	r.say("a", record)
	other := incident.Heartbeat{Service: "stock", Instance: "1", At: caught, Every: time.Minute, ReceivedAt: caught}
	if err := r.store.AddHeartbeat(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	list, err := r.store.Switching(t.Context())
	if err != nil || len(list) != 2 || list[0].Instance != "a" || list[0].Record != record || list[1].Record != (incident.Record{}) ||
		!list[0].ReceivedAt.Equal(r.now) || list[0].Every != time.Minute {
		t.Errorf("%+v, %v, want both of orders", list, err)
	}
	long := incident.Record{Epoch: 3, From: strings.Repeat("f", 1<<16), To: strings.Repeat("t", 1<<16), By: strings.Repeat("b", 1<<16)}
	r.say("a", long)
	if list, err = r.store.Switching(t.Context()); err != nil || len(list[0].Record.From+list[0].Record.To+list[0].Record.By) > 3*store.MaxText {
		t.Errorf("long names are kept: %v", err)
	}
	if got, err := r.store.Switches(t.Context(), time.Time{}); err != nil || len(got) != 2 || len(got[0].From+got[0].To+got[0].By) > 3*store.MaxText {
		t.Errorf("%d switches, %v, or long names", len(got), err)
	}
}

// TestSwitchIsMarked: a page is up to date again when another instance has learned of a switch.
func TestSwitchIsMarked(t *testing.T) {
	r := &reports{t, temp(t), caught}
	last := int64(0)
	for _, step := range []struct {
		instance string
		record   incident.Record
		news     bool
	}{
		{"a", incident.Record{}, false},
		{"a", moving(2, "redis", "sql"), true},
		{"a", moving(2, "redis", "sql"), false},
		{"b", moving(2, "redis", "sql"), true},
		{"b", settled(moving(2, "redis", "sql")), true},
	} {
		r.say(step.instance, step.record)
		m, err := r.store.Marks(t.Context())
		if err != nil || m.Switches > last != step.news {
			t.Errorf("%+v: mark %d after %d, %v", step, m.Switches, last, err)
		}
		last = m.Switches
	}
}

func TestForgetSwitches(t *testing.T) {
	r := &reports{t, temp(t), caught}
	r.say("a", moving(2, "redis", "sql"))
	if _, err := r.store.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	r.want("")
	if list, err := r.store.Switching(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestPurgeSwitches(t *testing.T) {
	r := &reports{t, temp(t), caught}
	r.say("a", moving(2, "redis", "sql"))
	r.say("a", moving(3, "sql", "redis"))
	purge(t, r.store, store.Retention{}, r.now.AddDate(0, 0, 29))
	r.want("2 redis>sql 1-2, 3 sql>redis 2-")
	purge(t, r.store, store.Retention{}, r.now.AddDate(0, 0, 31))
	r.want("3 sql>redis 2-") // the last of a service stays
}

// TestManySwitches: whoever may send heartbeats may report any number of switches.
func TestManySwitches(t *testing.T) {
	path := t.TempDir() + "/m.db"
	s := openStore(t, path)
	exec(t, path, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO switches (service, epoch, origin, target, made_by, seen_at, over_at) SELECT 's' || i, 1, 'a', 'b', '', %d, 0 FROM n`,
		incident.MaxHeartbeats+5, caught.UnixMicro()))
	if n := purge(t, s, store.Retention{}, caught); n != 5 {
		t.Errorf("%d are purged, want 5", n)
	}
}
