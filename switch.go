package belay

import (
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/switchlock"
	"github.com/belaygo/belay/notify/outbox"
)

// switchOf returns the source of the heartbeats' switch, or nil if e is no
// switchlock.Engine, nor a struct that embeds one.
func switchOf(e lockengine.Engine) func() outbox.Switch {
	engine, ok := e.(interface{ State() switchlock.State })
	if !ok {
		return nil
	}
	return func() outbox.Switch {
		s := engine.State()
		return outbox.Switch{Epoch: s.Epoch, From: s.From, To: s.To, Settled: s.Settled, By: s.By, Left: s.Left}
	}
}
