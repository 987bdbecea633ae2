package incident

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/notify"
)

// ErrInvalidSettlement is matched by the errors of Settlement.Validate.
var ErrInvalidSettlement = errors.New("incident: invalid settlement")

// ErrChanged is returned when an incident has another number of operations in doubt than
// the person who settles all of them was shown.
var ErrChanged = errors.New("incident: another number of operations is in doubt by now: look at them again")

// Settlement says what became of operations of unknown outcome, as a person found out.
type Settlement struct {
	At         time.Time      `json:"at"`
	Key        string         `json:"key,omitempty"` // whose operations; empty: all of the incident that were in doubt
	Outcome    notify.Outcome `json:"outcome"`       // committed: they took effect; rolled_back: they did not
	Operations int64          `json:"operations"`    // how many; the store counts those of one key
	By         string         `json:"by"`            // required
	Note       string         `json:"note,omitempty"`
}

// Validate reports the first field that is wrong.
func (s Settlement) Validate() error {
	switch {
	case s.Outcome != notify.OutcomeCommitted && s.Outcome != notify.OutcomeRolledBack:
		return fmt.Errorf("%w: outcome %.40q is neither committed nor rolled_back", ErrInvalidSettlement, string(s.Outcome))
	case s.Key == "" && s.Operations <= 0:
		return fmt.Errorf("%w: neither a key nor the number of all operations", ErrInvalidSettlement)
	case s.By == "":
		return fmt.Errorf("%w: by is empty", ErrInvalidSettlement)
	case len(s.Note) > maxComment:
		return fmt.Errorf("%w: note is longer than %d bytes", ErrInvalidSettlement, maxComment)
	}
	return nil
}
