package incident

import (
	"context"
	"time"
)

// age resolves what has been quiet while events could arrive, and calms what no
// longer escalates. Operations of unknown outcome keep an incident open until somebody
// has settled them.
func (t *Tracker) age(ctx context.Context, now time.Time) error {
	open, err := t.cfg.Store.OpenIncidents(ctx)
	if err != nil {
		return err
	}
	d := t.desk(now)
	for n := range open { // there may be many: none is copied
		i := &open[n]
		d.incidents[i.ID] = i
		switch {
		case i.Cause == HeartbeatSilent: // it ends with a heartbeat
		case i.Effect.Unknown == 0 && !t.reading.IsZero() && now.Sub(quietSince(t.reading, i.SeenAt, now)) >= t.cfg.Quiet:
			d.resolve(i)
		case i.State == Escalating:
			if i.Rate.roll(now); !i.Rate.escalates() && i.Rate.Start.Equal(now) {
				i.State = Ongoing
				d.changed[i.ID] = true
			}
		}
	}
	return d.save(ctx)
}
