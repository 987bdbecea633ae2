package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestDenied: a node that refuses guard-monitor lives, and what it did meanwhile
// is not known.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	answered := w.now
	a := w.nodes["a:1"]
	a.err = errors.New("WRONGPASS invalid username-password pair or user is disabled")
	for range 5 {
		w.want(w.round())
	}
	if n := w.state.Nodes[0]; n.Up || n.DownAt.IsZero() || !strings.HasPrefix(n.Error, "WRONGPASS") {
		t.Errorf("node %+v, want it not up, and why", n)
	}
	a.err = nil
	e := w.want(w.round(), Watching)
	if e.Node != "a:1" || !e.Since.Equal(answered) || !strings.Contains(e.Text, "WRONGPASS") {
		t.Errorf("entry %+v, want since when nothing is known of the node, and why", e)
	}
	w.want(w.round())
}

// TestDeniedIsLogged: once, and with what is missing.
func TestDeniedIsLogged(t *testing.T) {
	var log bytes.Buffer
	watcher, err := New(Config{
		Targets: []Target{{Name: "main", Addrs: []string{"a:1"}}},
		Record:  func(context.Context, []Entry) error { return nil },
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	forbidden := errors.New("NOPERM this user has no permissions to run the 'cluster|nodes' command")
	for range 3 {
		watcher.targets[0].take(t.Context(), &round{looks: map[string]*look{"a:1": {err: forbidden, denied: denied(forbidden)}}})
	}
	if n := strings.Count(log.String(), "cluster|nodes"); n != 1 {
		t.Errorf("the missing permission was logged %d times, want once:\n%s", n, log.String())
	}
}
