package incident

import "time"

// Rate counts the operations of an incident that failed or were refused, as far as its
// state and severity need them.
type Rate struct {
	Start time.Time `json:"start"` // of the current minute; minutes follow the first failure
	Now   int64     `json:"now"`   // operations in it
	Peak  int64     `json:"peak"`  // most operations in any minute before it

	Counts       // operations since the incident began or came back
	Reports int  `json:"reports,omitempty"` // events of refused operations since then
	Doubted bool `json:"doubted,omitempty"` // the outcome of some was unknown since then
}

const (
	rateWindow = time.Minute
	// An incident escalates when a minute has this many operations and this many
	// times as many as the worst minute before.
	escalateMin    = 10
	escalateFactor = 3
)

// add counts the operations of one event that was taken in at the time.
func (r *Rate) add(at time.Time, e Effect) {
	r.roll(at)
	if r.Start.IsZero() {
		r.Start = at
	}
	r.Now += e.Failures + e.Refused
	r.weigh(e)
}

// weigh notes what one event means for the severity and for the next alert, whenever it was
// taken in.
func (r *Rate) weigh(e Effect) {
	r.Doubted = r.Doubted || e.Unknown > 0
	r.Counts.add(e)
	if e.Refused > 0 {
		r.Reports++
	}
}

// critical reports whether the outcome of operations was unknown, or more were refused than
// in a moment without Redis.
func (r Rate) critical() bool { return r.Doubted || r.Refused >= escalateMin || r.Reports > 1 }

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
