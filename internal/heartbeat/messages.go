package heartbeat

import (
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// Messages counts the messages that wait in the tables of an instance: see relay.Backlog. All
// instances with one database report the same.
type Messages struct {
	Table      string        `json:"table"`          // with its database
	Waiting    int           `json:"waiting"`        // messages, 10,000 at most
	Oldest     time.Duration `json:"oldest_ms"`      // age of the oldest whose key has no dead letter; carried in whole milliseconds
	Parked     int           `json:"parked"`         // keys that wait, since a message was not accepted
	Dead       int           `json:"dead"`           // dead letters
	Undecided  int           `json:"undecided"`      // dead letters that may have taken effect
	OldestDead time.Duration `json:"oldest_dead_ms"` // since when there are dead letters; carried in whole milliseconds
}

// Validate checks what a heartbeat reports of messages. Its errors match notify.ErrInvalidEvent.
func (m *Messages) Validate() error {
	switch {
	case *m == Messages{}:
		return nil
	case m.Table == "":
		return cloudevent.Invalid("messages.table is empty")
	case min(m.Waiting, m.Parked, m.Dead, m.Undecided) < 0 || min(m.Oldest, m.OldestDead) < 0:
		return cloudevent.Invalid("a number of messages is negative")
	}
	return nil
}
