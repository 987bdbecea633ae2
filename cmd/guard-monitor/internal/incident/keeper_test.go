package incident

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

var heardAt = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func reported(instance string, ago time.Duration, r Record) Heartbeat {
	return Heartbeat{Service: "orders", Instance: instance, Every: time.Minute, ReceivedAt: heardAt.Add(-ago), Record: r}
}

func TestKeepers(t *testing.T) {
	old := Record{Epoch: 3, From: "redis", To: "redis", Settled: true}
	moving := Record{Epoch: 4, From: "redis", To: "sql", By: "alice", Left: 40 * time.Second}
	over := Record{Epoch: 4, From: "redis", To: "sql", By: "alice", Settled: true}
	by := Between{4, "redis", "sql", "alice"}
	switches := []Switch{
		{Service: "stock", Between: by, SeenAt: heardAt},
		{Service: "orders", Between: by, SeenAt: heardAt.Add(-time.Minute)},
		{Service: "orders", Between: Between{2, "redis", "sql", "bob"}, SeenAt: heardAt.Add(-time.Hour)},
		{Service: "orders", Between: Between{9, "redis", "sql", "bob"}, SeenAt: heardAt.Add(-2 * time.Hour)}, // of a record that is lost
	}
	at := heardAt.Add(-time.Minute)
	for name, tt := range map[string]struct {
		beats []Heartbeat
		want  Keeper
	}{
		"first record": {[]Heartbeat{reported("a", 0, old)},
			Keeper{Between: Between{3, "redis", "redis", ""}, Settled: true, Instances: 1, Knowing: 1}},
		"moving": {[]Heartbeat{reported("a", 5*time.Second, moving), reported("b", time.Second, moving), reported("c", 0, old)},
			Keeper{Between: by, Since: at, Until: heardAt.Add(39 * time.Second), Instances: 3, Knowing: 2, Behind: []string{"c"}}},
		"settled as one says": {[]Heartbeat{reported("a", 0, moving), reported("b", 0, over)},
			Keeper{Between: by, Since: at, Settled: true, Instances: 2, Knowing: 2}},
		"one is behind": {[]Heartbeat{reported("a", time.Minute, old), reported("b", 0, over)},
			Keeper{Between: by, Since: at, Settled: true, Instances: 2, Knowing: 1, Behind: []string{"a"}, Late: true}},
		"one can't switch": {[]Heartbeat{reported("a", 0, over), reported("b", 0, Record{})},
			Keeper{Between: by, Since: at, Settled: true, Instances: 2, Knowing: 1, Behind: []string{"b"}, Late: true}},
		"one has another record of that number": {[]Heartbeat{reported("a", 0, over), reported("b", 0, Record{Epoch: 4, From: "redis", To: "etcd", Settled: true})},
			Keeper{Between: by, Since: at, Settled: true, Instances: 2, Knowing: 1, Behind: []string{"b"}, Late: true}},
		"one has ended": {[]Heartbeat{reported("a", 4*time.Minute, Record{Epoch: 8, From: "sql", To: "redis"}), reported("b", 0, over)},
			Keeper{Between: by, Since: at, Settled: true, Instances: 1, Knowing: 1}},
		"times change": {[]Heartbeat{reported("a", 0, Record{Epoch: 5, From: "sql", To: "sql"})},
			Keeper{Between: Between{5, "sql", "sql", ""}, Since: at, Instances: 1, Knowing: 1}},
	} {
		tt.want.Service = "orders"
		if got := KeepersOf(tt.beats, switches); !reflect.DeepEqual(got, []Keeper{tt.want}) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, tt.want)
		}
	}
}

func TestKeepersOfServices(t *testing.T) {
	var beats []Heartbeat
	for _, service := range []string{"a", "b", "c"} {
		for n := range 30 {
			h := reported(fmt.Sprint(n), 0, Record{})
			if h.Service = service; n == 0 && service != "b" {
				h.Record = Record{Epoch: 1, From: "redis", To: "redis", Settled: true}
			}
			beats = append(beats, h)
		}
	}
	got := KeepersOf(beats, nil)
	if len(got) != 2 || got[0].Service != "a" || got[1].Service != "c" || got[0].Instances != 30 || len(got[0].Behind) != MaxBehind || got[0].Knowing != 1 {
		t.Errorf("%+v", got)
	}
	if list := KeepersOf(nil, nil); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
