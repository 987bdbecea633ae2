package heartbeat

import (
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// Calls counts the requests of guard.Call that are not settled in the table of an instance. All instances
// with one database report the same.
type Calls struct {
	Table           string        `json:"table"`               // with its database
	Pending         int           `json:"pending"`             // requests, with those that are undecided, 10,000 at most
	Oldest          time.Duration `json:"oldest_ms"`           // age of the oldest that is not undecided; carried in whole milliseconds
	Undecided       int           `json:"undecided"`           // requests that a person has to decide
	OldestUndecided time.Duration `json:"oldest_undecided_ms"` // since when the first of them is undecided; carried in whole milliseconds
}

// Validate checks what a heartbeat reports of calls. Its errors match notify.ErrInvalidEvent.
func (c *Calls) Validate() error {
	switch {
	case *c == Calls{}:
		return nil
	case c.Table == "":
		return cloudevent.Invalid("calls.table is empty")
	case min(c.Pending, c.Undecided) < 0 || min(c.Oldest, c.OldestUndecided) < 0:
		return cloudevent.Invalid("a number of calls is negative")
	}
	return nil
}
