package outbox

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/doctor"
)

// oldEvent is the age at which a stored event is late: a relay publishes it within
// moments, and tries again within minutes.
const oldEvent = 10 * time.Minute

var _ doctor.Diagnoser = (*Outbox)(nil)

// Diagnose returns whether the table can be used, and whether events wait in it. It is a
// part of belay.Doctor.
func (o *Outbox) Diagnose(ctx context.Context) []doctor.Finding {
	const subject = "belay_outbox"
	if err := o.Ping(ctx); err != nil {
		return []doctor.Finding{doctor.EventsOutbox.Failed(subject, err)}
	}
	n, err := o.table.count(ctx)
	if err != nil {
		return []doctor.Finding{doctor.EventsOutbox.Failed(subject, err)}
	}
	seconds, err := o.table.oldest(ctx)
	if err != nil {
		return []doctor.Finding{doctor.EventsOutbox.Failed(subject, err)}
	}
	if age := time.Since(time.UnixMicro(int64(seconds * 1e6))); n > 0 && seconds > 0 && age > oldEvent {
		return []doctor.Finding{doctor.EventsBacklog.Found(subject, "%d events wait, the oldest for %v", n, age.Round(time.Minute))}
	}
	return nil
}
