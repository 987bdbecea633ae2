package outbox

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/heartbeat"
)

// Messages counts the messages that wait in the tables of a process, as a relay.Backlog does.
type Messages struct {
	Table      string        // with its database
	Waiting    int           // messages
	Oldest     time.Duration // age of the oldest whose key has no dead letter
	Parked     int           // keys that wait, since a message was not accepted
	Dead       int           // dead letters
	Undecided  int           // dead letters that may have taken effect
	OldestDead time.Duration // since when there are dead letters
}

// messages counts the messages, in what the count of the outbox has left of its time: events wait
// meanwhile. If that fails, it returns the zero Messages, because without a
// heartbeat the process would seem dead.
func (h *heart) messages(ctx context.Context) heartbeat.Messages {
	if h.cfg.Messages == nil {
		return heartbeat.Messages{}
	}
	var m heartbeat.Messages
	err := background.Do(h.cfg.Logger, "count messages", func() error {
		counted, err := h.cfg.Messages(ctx)
		if m = heartbeat.Messages(counted); err != nil {
			return err
		}
		return m.Validate()
	})
	if err != nil {
		h.cfg.Logger.Debug("a heartbeat is sent without the number of messages", "error", err)
		return heartbeat.Messages{}
	}
	return m
}
