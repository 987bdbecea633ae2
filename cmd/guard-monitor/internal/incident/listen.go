package incident

import (
	"context"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// hear notes since when events, and events and heartbeats, could arrive without a
// break. Time without a broker is a break, and so is time in which this process or
// its host stood still, or its clock was set.
func (t *Tracker) hear(now time.Time) {
	pause := now.Sub(t.listened)
	t.listened = now
	stood := pause < 0 || pause > t.cfg.SilentAfter
	t.reading = unbroken(t.reading, now, t.cfg.Connected(), stood)
	session := t.cfg.Listening()
	t.heardAll = unbroken(t.heardAll, now, session > 0, stood || session != t.session)
	t.session = session
}

// unbroken returns since when something goes on without a break, zero if it does not.
func unbroken(last, now time.Time, goesOn, stood bool) time.Time {
	switch {
	case !goesOn:
		return time.Time{}
	case last.IsZero() || stood:
		return now
	}
	return last
}

// clockSet is how much later than now something must have been stored for the
// clock to have been set back since: it may also have come during the round.
const clockSet = time.Minute

// quietSince returns since when it is known that nothing came, after what came
// last at a time, if it could have since heard.
func quietSince(heard, last, now time.Time) time.Time {
	if heard.After(last) || last.Sub(now) > clockSet {
		return heard
	}
	return last
}

// listen makes an incident of every service that has become silent, and ends it with
// the next heartbeat. While no heartbeat can arrive, it does neither.
func (t *Tracker) listen(ctx context.Context, now time.Time) error {
	if t.heardAll.IsZero() {
		return nil
	}
	beats, err := t.cfg.Store.Heartbeats(ctx)
	if err != nil {
		return err
	}
	open, err := t.cfg.Store.OpenIncidents(ctx)
	if err != nil {
		return err
	}
	d := t.desk(now)
	silent := make(map[string]*Incident) // by service
	for n := range open {
		if i := &open[n]; i.Cause == HeartbeatSilent {
			silent[i.Service], d.incidents[i.ID] = i, i
		}
	}
	for _, h := range beats {
		if err := d.heard(ctx, h, silent[h.Service]); err != nil {
			return err
		}
		delete(silent, h.Service)
	}
	for _, i := range silent { // of services that were taken out of service
		d.resolve(i)
	}
	return d.save(ctx)
}

// heard judges a service by its last heartbeat. open is the incident of its silence, nil
// if there is none.
func (d *desk) heard(ctx context.Context, h Heartbeat, open *Incident) error {
	patience := max(d.cfg.SilentAfter, 3*h.Every)
	silent := d.now.Sub(quietSince(d.heardSince(h.Service), h.ReceivedAt, d.now)) > patience
	switch age := d.now.Sub(h.ReceivedAt); {
	case open != nil && -clockSet <= age && age <= patience:
		d.resolve(open)
		return nil
	case open != nil || !silent:
		return nil
	}
	key := GroupKey(h.Service, HeartbeatSilent, "", "")
	i, err := d.last(ctx, key)
	switch {
	case err != nil:
		return err
	case i == nil || d.now.Sub(i.ResolvedAt) > regress:
		i = d.begin(h.Service, HeartbeatSilent, key, h.ReceivedAt)
	default:
		d.reopen(i)
	}
	i.SeenAt = d.now
	i.believe(Explanation{Cause: HeartbeatSilent, Confidence: High, Evidence: d.silence(h)}, "")
	d.changed[i.ID] = true
	return nil
}

// heardSince returns since when all heartbeats of a service could arrive.
func (d *desk) heardSince(service string) time.Time {
	if at := d.cfg.RejectedAt(service); at.After(d.heardAll) {
		return at
	}
	return d.heardAll
}

func (d *desk) silence(h Heartbeat) []Evidence {
	return []Evidence{
		{At: h.ReceivedAt.UTC(), Node: h.Instance, Kind: LastHeartbeat, Service: text.Clip(h.Service, maxName), For: h.Every},
		{At: d.now.UTC(), Kind: NoHeartbeat, From: d.heardSince(h.Service).UTC()},
	}
}
