package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// anyService stands for all services in Route.Services.
const anyService = "*"

// wants returns how long it is until the receiver gets an incident, if nothing changes: 0 if
// it gets the incident now. What it was sent as open, it gets until that is over, whatever
// becomes of it. It has been open since opened.
func (r *Route) wants(now, opened time.Time, i *incident.Incident, told store.Told) time.Duration {
	switch {
	case told.State != "" && told.State.Open():
		return 0
	case len(r.Services) > 0 && !slices.Contains(r.Services, anyService) && !slices.Contains(r.Services, i.Service):
		return never
	case len(r.Severities) > 0 && !slices.Contains(r.Severities, i.Severity()):
		return never
	case r.EscalateAfter == 0:
		return 0
	case !i.State.Open() || i.AckedBy != "":
		return never
	}
	return max(0, r.EscalateAfter-now.Sub(opened))
}

// escalated says in a first message why the receiver gets it.
func (r *Route) escalated(n *receiver.Notification) {
	if n.Reason != reasonUnacked {
		return
	}
	for _, a := range n.Alerts {
		a.Annotations[receiver.AnnotationDescription] = fmt.Sprintf("nobody acknowledged this in %v; %s",
			r.EscalateAfter, a.Annotations[receiver.AnnotationDescription])
	}
}
