package web

import (
	"encoding/json"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
)

// The bodies of the API: names and meanings stay, see docs/api.md. Most are what the
// store has, with the texts beside it.

type apiList[T any] struct {
	Items []T `json:"items"`
}

func convert[A, B any](list []A, one func(A) B) []B {
	all := make([]B, 0, len(list)) // an empty list is [], not null
	for _, v := range list {
		all = append(all, one(v))
	}
	return all
}

type apiOverview struct {
	openCounts
	intake
	Incidents    []apiIncident `json:"incidents"`
	LastFailover *apiEntry     `json:"last_failover,omitempty"`
	DeadLetters  *int          `json:"dead_letters,omitempty"`
	NewestEvent  time.Time     `json:"newest_event_received_at,omitzero"`
	NewestBeat   time.Time     `json:"newest_heartbeat_received_at,omitzero"`
	Clusters     []apiCluster  `json:"clusters"`
	Services     []apiService  `json:"services"`
	LastHour     *int64        `json:"events_last_hour,omitempty"`
	HourBefore   *int64        `json:"events_hour_before,omitempty"`
	AtLeast      bool          `json:"events_at_least"` // one of the two
}

func apiOverviewOf(d *overviewData, in intake) apiOverview {
	o := apiOverview{
		openCounts: d.openCounts, intake: in, Incidents: convert(d.Open, apiIncidentOf),
		Clusters: convert(d.Clusters, apiClusterOf), Services: convert(d.Services, apiServiceOf),
		AtLeast: d.Hour.More || d.Before.More,
	}
	if d.Counted {
		o.LastHour, o.HourBefore = &d.Hour.N, &d.Before.N
	}
	if d.DeadKnown {
		o.DeadLetters = &d.Dead
	}
	if d.Failover != nil {
		e := apiEntryOf(*d.Failover)
		o.LastFailover = &e
	}
	if len(d.Latest) > 0 {
		o.NewestEvent = d.Latest[0].At
	}
	if d.Beat != nil {
		o.NewestBeat = d.Beat.ReceivedAt
	}
	return o
}

type apiIncident struct {
	incident.Incident
	Severity string        `json:"severity"`
	Failures int64         `json:"failures"`
	Unknowns int64         `json:"unknowns"`
	Effect   apiEffect     `json:"effect"`
	Evidence []apiEvidence `json:"evidence"`
	NextStep string        `json:"next_step"`
	Silenced bool          `json:"silenced"`
}

func apiIncidentOf(i incident.Incident) apiIncident {
	return apiIncident{
		Incident: i, Severity: i.Severity(), Failures: i.Effect.Failures, Unknowns: i.Effect.Unknown,
		Effect: apiEffect{i.Effect, words.EffectLine(i.Effect)}, Evidence: convert(i.Evidence, apiEvidenceOf),
		NextStep: words.English.Next(i), Silenced: i.Silenced(),
	}
}

// apiWholeIncident is an incident that was asked for by its ID.
type apiWholeIncident struct {
	apiIncident
	Settlements []incident.Settlement `json:"settlements"` // the newest first
}

type apiEffect struct {
	incident.Effect
	Text string `json:"text"`
}

type apiEvidence struct {
	incident.Evidence
	Text    string           `json:"text"`
	Numbers map[string]int64 `json:"numbers,omitempty"` // of the entry
}

func apiEvidenceOf(e incident.Evidence) apiEvidence {
	body := apiEvidence{Evidence: e, Text: words.English.Evidence(e)}
	if e.Entry != nil {
		body.Numbers = e.Entry.Numbers
	}
	return body
}

type apiEvent struct {
	store.Received
	Event json.RawMessage `json:"event"` // CloudEvents, as on the broker
}

func apiEventOf(r store.Received) apiEvent {
	event, err := json.Marshal(&r.Event)
	if err != nil { // it was read from columns, since the body was cut
		event = []byte("null")
	}
	return apiEvent{r, event}
}

type apiEntry struct {
	watch.Entry
	Text string `json:"text"`
}

func apiEntryOf(e watch.Entry) apiEntry { return apiEntry{e, words.English.Entry(e)} }

type apiCluster struct {
	Name   string     `json:"name"`
	Mode   watch.Mode `json:"mode"`
	SeenAt time.Time  `json:"seen_at,omitzero"`
	Stale  bool       `json:"stale"`
	Nodes  []apiNode  `json:"nodes"`
}

type apiNode struct {
	Addr   string    `json:"addr"`
	Up     bool      `json:"up"`
	DownAt time.Time `json:"down_at,omitzero"`
	Role   string    `json:"role,omitempty"`
	Master string    `json:"master,omitempty"`
	Shard  string    `json:"shard,omitempty"`
	Epoch  int64     `json:"epoch"`
}

func apiClusterOf(c clusterHealth) apiCluster {
	return apiCluster{c.Name, c.Mode, c.SeenAt, c.Stale, convert(c.Nodes, func(n watch.Node) apiNode {
		return apiNode{n.Addr, n.Up, n.DownAt, n.Role, n.Master, n.Shard, n.Epoch}
	})}
}

type apiService struct {
	serviceHealth
	Every float64 `json:"every_seconds"`
}

func apiServiceOf(s serviceHealth) apiService { return apiService{s, s.Every.Seconds()} }

type apiMessages struct {
	sentMessages
	Service    string  `json:"service"`
	Oldest     float64 `json:"oldest_seconds"`
	OldestDead float64 `json:"oldest_dead_seconds"`
}

func apiMessagesOf(m sentMessages) apiMessages {
	return apiMessages{m, m.Service, m.Oldest.Seconds(), m.OldestDead.Seconds()}
}

type apiCalls struct {
	openCalls
	Service         string  `json:"service"`
	Oldest          float64 `json:"oldest_seconds"`
	OldestUndecided float64 `json:"oldest_undecided_seconds"`
}

func apiCallsOf(c openCalls) apiCalls {
	return apiCalls{c, c.Service, c.Oldest.Seconds(), c.OldestUndecided.Seconds()}
}

type apiSilence struct {
	incident.Silence
	Active bool `json:"active"`
}

func apiSilenceOf(s incident.Silence) apiSilence { return apiSilence{s, s.Active(time.Now())} }
