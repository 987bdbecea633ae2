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
	if e.Node != "a:1" || !e.Since.Equal(answered) || !strings.Contains(e.Names[Reason], "WRONGPASS") {
		t.Errorf("entry %+v, want since when nothing is known of the node, and why", e)
	}
	w.want(w.round())
}

// logged makes a target whose log is kept.
func logged(t *testing.T, cfg Target) (*target, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	watcher := New(Config{
		Targets: []Target{cfg},
		Record:  func(context.Context, []Entry) error { return nil },
		Logger:  slog.New(slog.NewTextHandler(log, nil)),
	})
	return watcher.targets[0], log
}

// once checks how often the log says something.
func once(t *testing.T, log *bytes.Buffer, what string) {
	t.Helper()
	if n := strings.Count(log.String(), what); n != 1 {
		t.Errorf("%q was logged %d times, want once:\n%s", what, n, log)
	}
}

// TestDeniedIsLogged: once, and with what is missing.
func TestDeniedIsLogged(t *testing.T) {
	target, log := logged(t, Target{Name: "main", Addrs: []string{"a:1"}})
	refusal := errors.New("NOPERM this user has no permissions to run the 'cluster|nodes' command")
	for range 3 {
		target.take(t.Context(), &round{looks: map[string]*look{"a:1": {err: refusal, denied: forbidden(refusal)}}})
	}
	once(t, log, "cluster|nodes")
}

// TestNoSentinelIsLogged: without one nothing is watched.
func TestNoSentinelIsLogged(t *testing.T) {
	target, log := logged(t, Target{Name: "main", Addrs: []string{"127.0.0.1:1"}, Master: "m"}) // not served
	for range 3 {
		target.take(t.Context(), target.look(t.Context()))
	}
	once(t, log, "sentinel 127.0.0.1:1")
}
