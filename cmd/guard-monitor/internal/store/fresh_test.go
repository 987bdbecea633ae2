package store_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// receive adds an event as the sources do: with the JSON that it was decoded from.
func receive(t *testing.T, s *store.Store, ev notify.Event) {
	t.Helper()
	raw, err := json.Marshal(ev)
	noError(t, err)
	var decoded notify.Event
	noError(t, decoded.UnmarshalJSON(raw))
	_, err = s.Add(t.Context(), decoded, raw, "shop")
	noError(t, err)
}

// ungrouped reads all events that are in no incident.
func ungrouped(t *testing.T, s *store.Store) []incident.Received {
	t.Helper()
	list, err := s.Ungrouped(t.Context(), 100)
	noError(t, err)
	return list
}

// variety returns events that differ in all that the store treats in another way.
func variety() (list []notify.Event) {
	long := event("long")
	long.Key, long.Instance = fmt.Sprintf("%600d", 7), fmt.Sprintf("%600d", 8) // their columns are cut
	future := event("future")
	future.CaughtAt = time.Now().AddDate(1, 0, 0)
	zone := event("zone")
	zone.CaughtAt = caught.In(time.FixedZone("", 3600))
	held := several("held", "sku:7", "order:1", "sku:7")
	held.Owner, held.AcquiredAt, held.Deadline, held.TTL = "o", caught.Add(-time.Second), caught, 30*time.Second
	held.Trace.Parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	versions := event("versions")
	versions.Table, versions.Index, versions.Versions = "stock", []string{"sku"}, &notify.Versions{Expected: 1, Found: 2}
	many := event("many")
	many.Count = store.MaxCount
	return []notify.Event{event("plain"), long, future, zone, held, versions, many}
}

// An event that waits in memory to be grouped is what the file has of it. Nothing depends on the
// memory: whoever opens the file finds each event that is in no incident.
func TestUngroupedAreTheSameFromMemoryAndFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	for _, ev := range variety() {
		receive(t, s, ev)
	}
	apply(t, s, []incident.Incident{anIncident("a")}, incident.Move{Seq: 1, Incident: "a"})
	fromMemory := ungrouped(t, s)
	if want := len(variety()) - 1; len(fromMemory) != want {
		t.Fatalf("%d events, want %d", len(fromMemory), want)
	}
	closeStore(t, s)
	fromFile := ungrouped(t, openStore(t, path))
	if !reflect.DeepEqual(fromMemory, fromFile) {
		t.Errorf("in memory\n%+v\nin the file\n%+v", fromMemory, fromFile)
	}
}

// Events that came moments ago are not read from the file again.
func TestUngroupedAreNotReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	receive(t, s, event("1"))
	exec(t, path, `UPDATE events SET body = x'00', instance = 'read from the file'`)
	if list := ungrouped(t, s); len(list) != 1 || list[0].Event.Instance != "orders-1" {
		t.Errorf("events %+v", list)
	}
}

// Memory holds a bounded part of the events, those alone that it has whole, and none twice: all
// are grouped in order.
func TestUngroupedThatAreNotInMemory(t *testing.T) {
	s := temp(t)
	var want []string
	note := func(ev notify.Event) { want = append(want, ev.ID) }
	cut := event("cut")
	cut.Owner = fmt.Sprintf("%*d", store.MaxBody, 7)
	made := event("made") // with no JSON
	for n, ev := range []notify.Event{event("1"), cut, event("2"), event("3"), made, event("4")} {
		if note(ev); ev.ID == "made" {
			add(t, s, ev, nil, true)
			continue
		}
		receive(t, s, ev)
		if n == 0 {
			receive(t, s, ev) // again
		}
	}
	apply(t, s, []incident.Incident{anIncident("a")})
	var got []string
	for list := ungrouped(t, s); len(list) > 0; list = ungrouped(t, s) {
		for _, r := range list {
			got = append(got, r.Event.ID)
			if r.Event.ID == "cut" && r.Event.Owner != "" {
				t.Error("more is known of an event than the file has")
			}
			apply(t, s, nil, incident.Move{Seq: r.Seq, Incident: "a"})
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}
