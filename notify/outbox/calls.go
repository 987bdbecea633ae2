package outbox

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/heartbeat"
)

// Calls counts the requests of guard.Call that are not settled.
type Calls struct {
	Table           string        // with its database
	Pending         int           // requests, with those that are undecided
	Oldest          time.Duration // age of the oldest that is not undecided
	Undecided       int           // requests that a person has to decide
	OldestUndecided time.Duration // since when the first of them is undecided
}

// calls counts the calls, as messages counts the messages.
func (h *heart) calls(ctx context.Context) heartbeat.Calls {
	if h.cfg.Calls == nil {
		return heartbeat.Calls{}
	}
	var c heartbeat.Calls
	err := background.Do(h.cfg.Logger, "count calls", func() error {
		counted, err := h.cfg.Calls(ctx)
		if c = heartbeat.Calls(counted); err != nil {
			return err
		}
		return c.Validate()
	})
	if err != nil {
		h.cfg.Logger.Debug("a heartbeat is sent without the number of calls", "error", err)
		return heartbeat.Calls{}
	}
	return c
}
