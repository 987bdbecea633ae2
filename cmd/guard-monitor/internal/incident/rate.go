package incident

import "time"

// Rate counts the failures of an incident minute by minute, as far as its state
// needs them.
type Rate struct {
	Start time.Time `json:"start"` // of the current minute; minutes follow the first failure
	Now   int64     `json:"now"`   // failures in it
	Peak  int64     `json:"peak"`  // most failures in any minute before it
}

const (
	rateWindow = time.Minute
	// An incident escalates when a minute has this many failures and this many
	// times as many as the worst minute before.
	escalateMin    = 10
	escalateFactor = 3
)

// add counts n failures that were taken in at the time.
func (r *Rate) add(at time.Time, n int64) {
	r.roll(at)
	if r.Start.IsZero() {
		r.Start = at
	}
	r.Now += n
}

// roll ends the current minute if it is over, or has not come yet since the
// clock was set back.
func (r *Rate) roll(at time.Time) {
	if d := at.Sub(r.Start); r.Start.IsZero() || 0 <= d && d < rateWindow {
		return
	}
	r.Peak = max(r.Peak, r.Now)
	r.Now = 0
	r.Start = at
}

func (r *Rate) escalates() bool {
	return r.Peak > 0 && r.Now >= escalateMin && r.Now >= escalateFactor*r.Peak
}
