package switchlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/quorumlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A restarted is a node whose server started a moment ago.
type restarted struct{ lockengine.Engine }

func (restarted) Started() (time.Time, error) { return time.Now().Add(-2 * time.Second), nil }

// A forbidden engine has no right to the name of a lock.
type forbidden struct{ lockengine.Engine }

func (forbidden) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{}, fmt.Errorf("acquire: %w", lockengine.ErrUnusable)
}

// quorums returns engines on three nodes each, for locks of 10 s: one that grants them, one that denies
// them, and one that refuses them for now.
func quorums(t *testing.T) map[string]lockengine.Engine {
	t.Helper()
	engines := make(map[string]lockengine.Engine)
	for name, cfg := range map[string]quorumlock.Config{
		"grants":  {Durable: true, NodeTimeout: time.Second},
		"denies":  {Durable: true, NodeTimeout: 2 * time.Second},
		"refuses": {},
	} {
		var nodes []lockengine.Engine
		for range 3 {
			nodes = append(nodes, restarted{memlock.New()})
		}
		q, err := quorumlock.New(nodes, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.Close(context.Background()) })
		engines[name] = q
	}
	return engines
}

// openAmong opens an engine whose locks are in one of several engines.
func openAmong(t *testing.T, engines map[string]lockengine.Engine, first string) switchlock.Engine {
	t.Helper()
	f := newFleet()
	f.cfg.Engines, f.cfg.First, f.cfg.TTL = engines, first, 10*time.Second
	e := open(t, f.cfg)
	eventually(t, "read", func() bool { return e.State().Epoch == 1 })
	return e
}

// The new engine is asked for a lock as the services are going to: some engines grant none for a
// short time, and some none for a long time.
func TestToQuorum(t *testing.T) {
	for name, want := range map[string]error{"grants": nil, "denies": lockengine.ErrDenied, "refuses": lockengine.ErrRefused} {
		t.Run(name, func(t *testing.T) {
			engines := quorums(t)
			engines["a"] = newEngine()
			e := openAmong(t, engines, "a")
			if _, err := e.To(t.Context(), switchlock.Change{To: name}); !errors.Is(err, want) {
				t.Errorf("error is %v, want %v", err, want)
			}
		})
	}
}

// An engine that answers is not gone, even if it grants no lock: it may renew those that it has granted.
func TestEngineThatAnswersIsNotGone(t *testing.T) {
	for _, name := range []string{"grants", "denies", "refuses", "has no right to the name"} {
		t.Run(name, func(t *testing.T) {
			engines := quorums(t)
			engines["a"], engines["has no right to the name"] = newEngine(), forbidden{newEngine()}
			e := openAmong(t, engines, name)
			r, err := e.To(t.Context(), switchlock.Change{To: "a", GoneSince: time.Now().Add(-time.Hour)})
			if err == nil || !strings.Contains(err.Error(), "not gone") {
				t.Errorf("%+v, error %v", r, err)
			}
		})
	}
}

// An engine that has granted a lock is not gone, whatever becomes of the release.
func TestEngineThatReleasesNothingIsNotGone(t *testing.T) {
	a := newEngine()
	a.mute.Store(true)
	e := openAmong(t, map[string]lockengine.Engine{"a": a, "b": newEngine()}, "a")
	r, err := e.To(t.Context(), switchlock.Change{To: "b", GoneSince: time.Now().Add(-time.Hour)})
	if err == nil || !strings.Contains(err.Error(), "not gone") {
		t.Errorf("%+v, error %v", r, err)
	}
}
