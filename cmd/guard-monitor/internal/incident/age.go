package incident

import (
	"context"
	"time"
)

// age resolves what has been quiet while events could arrive, and calms what no
// longer escalates.
func (t *Tracker) age(ctx context.Context, now time.Time) error {
	open, err := t.cfg.Store.OpenIncidents(ctx)
	if err != nil {
		return err
	}
	d := t.desk(now)
	for _, i := range open {
		d.incidents[i.ID] = &i
		switch {
		case i.Cause == HeartbeatSilent: // it ends with a heartbeat
		case !t.reading.IsZero() && now.Sub(quietSince(t.reading, i.SeenAt, now)) >= t.cfg.Quiet:
			d.resolve(&i)
		case i.State == Escalating:
			if i.Rate.roll(now); !i.Rate.escalates() && i.Rate.Start.Equal(now) {
				i.State = Ongoing
				d.changed[i.ID] = true
			}
		}
	}
	return d.save(ctx)
}
