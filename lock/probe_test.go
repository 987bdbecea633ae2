package lock_test

import (
	"context"
	"testing"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// prober is an engine that answers questions and grants no locks.
type prober struct {
	lock.Engine
	err    error
	probed string
}

func (p *prober) Probe(_ context.Context, key string) error {
	p.probed = key
	return p.err
}

func TestProbeAsksTheProber(t *testing.T) {
	engine := &prober{Engine: memlock.New(), err: lock.ErrRefused}
	l := newLocker(t, engine, lock.Config{})
	wantIs(t, l.Probe(t.Context(), "k"), lock.ErrRefused)
	engine.err = nil
	if err := l.Probe(t.Context(), "k"); err != nil || engine.probed != "k" {
		t.Errorf("Probe of %q: %v", engine.probed, err)
	}
}

// An engine that is no Prober is inspected.
func TestProbeWithoutProber(t *testing.T) {
	l := newLocker(t, memlock.New(), lock.Config{})
	if err := l.Probe(t.Context(), "k"); err != nil {
		t.Errorf("Probe: %v", err)
	}
	l = newLocker(t, deadEngine{newFaults()}, lock.Config{})
	wantIs(t, l.Probe(t.Context(), "k"), errDown)
}
