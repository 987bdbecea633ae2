package e2e_test

import (
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/switchlock"
	"github.com/belaygo/belay/notify/outbox"
)

// heartbeats has an instance tell the monitor what it knows of a switch.
func (i *instance) heartbeats(cfg *outbox.Config, e lockengine.Engine) {
	s, ok := e.(switchlock.Engine)
	if !ok {
		return
	}
	cfg.Service, cfg.Instance = "e2e", i.name
	cfg.Switch = func() outbox.Switch {
		r := s.State()
		return outbox.Switch{Epoch: r.Epoch, From: r.From, To: r.To, Settled: r.Settled, By: r.By, Left: r.Left}
	}
}

// shown waits until the monitor has both instances in an engine, and since when.
func (s *stage) shown(engine string) {
	s.t.Helper()
	testwait.Until(s.t, "the monitor shows the switch to "+engine, func() bool {
		beats, err := s.events.Switching(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		switches, err := s.events.Switches(s.t.Context(), time.Time{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, k := range incident.KeepersOf(beats, switches) {
			if k.To == engine && k.Settled && k.Knowing == 2 && k.By == "alice" && !k.Since.IsZero() {
				return true
			}
		}
		return false
	})
}
