package store_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

func TestTimeline(t *testing.T) {
	s := temp(t)
	entries := []watch.Entry{
		{At: caught, Kind: watch.Watching, Cluster: "main"},
		{At: caught.Add(time.Second), Since: caught, Kind: watch.Failover, Cluster: "main", Shard: "0-5460", Node: "b:1", Peer: "a:1",
			Names: map[string]string{watch.Role: "master"}, Numbers: map[string]int64{watch.NewEpoch: 7}},
		{At: caught.Add(2 * time.Second), Kind: watch.Down, Cluster: "other", Node: "c:1"},
	}
	if err := s.AddEntries(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[int]store.TimelineFilter{
		3: {}, 2: {Cluster: "main"}, 1: {Node: "a:1"}, 0: {Kinds: []watch.Kind{watch.Up}},
	} {
		if got, err := s.Timeline(t.Context(), f); err != nil || len(got) != want {
			t.Errorf("%+v: %v, %v, want %d", f, got, err, want)
		}
	}
	got, since, err := s.TimelineSince(t.Context(), "main", caught)
	if err != nil || !reflect.DeepEqual(got, entries[:2]) || !since.Equal(caught) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, entries[:2])
	}
	if got, err := s.TimelineAfter(t.Context(), entries[1].ID); err != nil || len(got) != 1 || got[0].Kind != watch.Down {
		t.Errorf("after the second: %+v, %v", got, err)
	}
}
