package dispatch

import "github.com/belaygo/belay/cmd/guard-monitor/internal/incident"

// Words are the summary and the description of an alert.
func Words(i *incident.Incident) (summary, description string) {
	d := new(Dispatcher)
	a := d.alert(i).Annotations
	return a["summary"], a["description"]
}
