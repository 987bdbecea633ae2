package incident

import (
	"context"
	"time"
)

// quiet reports whether no event has come for a while, and could have.
func (t *Tracker) quiet(i *Incident, now time.Time) bool {
	return !t.reading.IsZero() && now.Sub(quietSince(t.reading, i.SeenAt, now)) >= t.cfg.Quiet
}

// age resolves what has been quiet while events could arrive, and calms what no
// longer escalates. Operations of unknown outcome keep an incident open until somebody
// has settled them, and messages or calls that wait for a decision do until a heartbeat counts none.
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
		case i.Cause.waits():
			over, err := d.over(ctx, i)
			if err != nil {
				return err
			}
			if over {
				d.resolve(i)
			}
		case i.Effect.Unknown == 0 && t.quiet(i, now):
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

// over reports whether an incident of what waits for a decision is over. A heartbeat that has come soon after
// a break may have waited meanwhile, and have been counted before the last event.
func (d *desk) over(ctx context.Context, i *Incident) (bool, error) {
	all, err := d.waiting(ctx, i.Cause)
	if err != nil {
		return false, err
	}
	done, known := decided(i, all, quietSince(d.heardAll, i.SeenAt, d.now).Add(countDelay), d.now)
	if !known {
		return d.quiet(i, d.now), nil
	}
	return done && !d.heardAll.IsZero(), nil
}
