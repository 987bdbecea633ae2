package heartbeat

import (
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// A Switch is what the instance knows of the record that says which of several engines
// keeps the locks: see lock/switchlock.
type Switch struct {
	Epoch   int64         `json:"epoch"`        // of the record, from 1
	From    string        `json:"from"`         // the engine that kept the locks before
	To      string        `json:"to"`           // the one that keeps them
	Settled bool          `json:"settled"`      // no instance needs From any more
	By      string        `json:"by,omitempty"` // who made the switch
	Left    time.Duration `json:"left_ms"`      // for how long the instance still needs both; carried in whole milliseconds
}

// Validate checks what a heartbeat says of a switch. Its errors match notify.ErrInvalidEvent.
func (s *Switch) Validate() error {
	switch {
	case *s == Switch{}:
		return nil
	case s.Epoch < 1:
		return cloudevent.Invalid("switch.epoch %d is below 1", s.Epoch)
	case s.From == "" || s.To == "":
		return cloudevent.Invalid("switch.from or switch.to is empty")
	case s.Left < 0:
		return cloudevent.Invalid("switch.left_ms is negative")
	}
	return nil
}
