package watch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/notify"
)

// locate publishes the world and asks where a lock on the node is.
func (w *world) locate(node string) Location {
	w.t.Helper()
	watcher := New(Config{
		Targets: []Target{{Name: "main", Addrs: []string{"a:1"}}},
		Record:  func(context.Context, []Entry) error { return nil },
	})
	watcher.publish(0, w.state)
	at, ok := watcher.Locate(notify.Place{Node: node, Slot: 1})
	if !ok || at.Cluster != "main" {
		w.t.Errorf("Locate(%s) = %+v, %v", node, at, ok)
	}
	return at
}

// TestLocateSaysWhenTheNodeAnswered: a round in which a node did not answer
// says nothing of it, nor does its end.
func TestLocateSaysWhenTheNodeAnswered(t *testing.T) {
	w := newWorld(t)
	answered := w.now
	w.nodes["a:1"].err = errors.New("timeout")
	w.nodes["d:1"] = &fake{id: "D", runID: "rd", master: "B", err: errors.New("WRONGPASS")}
	for range 5 {
		w.round()
	}
	for node, want := range map[string]time.Time{"a:1": answered, "b:1": w.now, "d:1": {}} {
		if got := w.locate(node).SeenAt; !got.Equal(want) {
			t.Errorf("%s was seen at %v, want %v", node, got, want)
		}
	}
	delete(w.nodes, "a:1")
	w.round()
	if got := w.locate("a:1").SeenAt; !got.Equal(answered) {
		t.Errorf("a node that left was seen at %v, want %v", got, answered)
	}
}
