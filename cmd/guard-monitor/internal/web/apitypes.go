package web

import (
	"encoding/json"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

// The bodies of the API: names and meanings stay, see docs/api.md.

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

type apiOverviewBody struct {
	Open           int               `json:"open_incidents"`
	Critical       int               `json:"critical"`
	Unacknowledged int               `json:"unacknowledged"`
	Since          time.Time         `json:"since,omitzero"`
	Incidents      []apiIncidentBody `json:"incidents"`
	LastFailover   *apiEntryBody     `json:"last_failover,omitempty"`
	Broker         bool              `json:"broker_connected"`
	Storing        bool              `json:"store_takes_events"`
	DeadLetters    *int              `json:"dead_letters,omitempty"`
	NewestEvent    time.Time         `json:"newest_event_received_at,omitzero"`
	NewestBeat     time.Time         `json:"newest_heartbeat_received_at,omitzero"`
	Clusters       []apiClusterBody  `json:"clusters"`
	Services       []apiServiceBody  `json:"services"`
	LastHour       *int64            `json:"events_last_hour,omitempty"`
	HourBefore     *int64            `json:"events_hour_before,omitempty"`
	AtLeast        bool              `json:"events_at_least"` // one of the two
}

func apiOverviewOf(d *overviewData, in intake) apiOverviewBody {
	o := apiOverviewBody{
		Open: d.Total, Critical: d.Critical, Unacknowledged: d.Unacked, Since: d.Since,
		Incidents: convert(d.Open, apiIncidentOf), Broker: in.Connected, Storing: in.Storing,
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
	if d.Newest != nil {
		o.NewestEvent = d.Newest.At
	}
	if d.Beat != nil {
		o.NewestBeat = d.Beat.ReceivedAt
	}
	return o
}

type apiIncidentBody struct {
	ID         string              `json:"id"`
	Service    string              `json:"service"`
	Cause      incident.Cause      `json:"cause"`
	Severity   string              `json:"severity"`
	State      incident.State      `json:"state"`
	Confidence incident.Confidence `json:"confidence"`
	Cluster    string              `json:"cluster,omitempty"`
	Shard      string              `json:"shard,omitempty"`
	Place      notify.Place        `json:"place"`
	FirstAt    time.Time           `json:"first_at"`
	LastAt     time.Time           `json:"last_at"`
	OpenedAt   time.Time           `json:"opened_at"`
	UpdatedAt  time.Time           `json:"updated_at"`
	ResolvedAt time.Time           `json:"resolved_at,omitzero"`
	Events     int64               `json:"events"`
	Failures   int64               `json:"failures"`
	Keys       int64               `json:"keys"`
	Unknowns   int64               `json:"unknowns"`
	Effect     apiEffectBody       `json:"effect"`
	Regressed  int                 `json:"regressed"`
	Evidence   []apiEvidenceBody   `json:"evidence"`
	NextStep   string              `json:"next_step"`
	Runbook    string              `json:"runbook"`
	AckedBy    string              `json:"acked_by,omitempty"`
	AckedAt    time.Time           `json:"acked_at,omitzero"`
	Silenced   bool                `json:"silenced"`
	MergedInto string              `json:"merged_into,omitempty"`
}

func apiIncidentOf(i incident.Incident) apiIncidentBody {
	return apiIncidentBody{
		ID: i.ID, Service: i.Service, Cause: i.Cause, Severity: i.Severity(), State: i.State, Confidence: i.Confidence,
		Cluster: i.Cluster, Shard: i.Shard, Place: i.Place, FirstAt: i.FirstAt, LastAt: i.LastAt, OpenedAt: i.OpenedAt,
		UpdatedAt: i.UpdatedAt, ResolvedAt: i.ResolvedAt, Events: i.Events, Failures: i.Effect.Failures, Keys: i.Keys,
		Unknowns: i.Effect.Unknown, Effect: apiEffectOf(i.Effect), Regressed: i.Regressed, Evidence: convert(i.Evidence, apiEvidenceOf),
		NextStep: words.English.Next(i.Cause), Runbook: i.DocLink, AckedBy: i.AckedBy, AckedAt: i.AckedAt, Silenced: i.Silenced(),
		MergedInto: i.MergedInto,
	}
}

type apiEvidenceBody struct {
	incident.Evidence
	Text    string           `json:"text"`
	Numbers map[string]int64 `json:"numbers,omitempty"` // of the entry
}

func apiEvidenceOf(e incident.Evidence) apiEvidenceBody {
	body := apiEvidenceBody{Evidence: e, Text: words.English.Evidence(e)}
	if e.Entry != nil {
		body.Numbers = e.Entry.Numbers
	}
	return body
}

type apiEffectBody struct {
	Text      string   `json:"text"`
	Undone    int64    `json:"rolled_back"`
	Committed int64    `json:"committed"`
	Unknown   int64    `json:"unknown"`
	Without   int64    `json:"without_lock"`
	Refused   int64    `json:"refused"`
	Doubtful  []string `json:"keys_in_doubt,omitempty"`
}

func apiEffectOf(e incident.Effect) apiEffectBody {
	return apiEffectBody{words.EffectLine(e), e.Undone, e.Committed, e.Unknown, e.Without, e.Refused, e.Doubtful}
}

type apiEventBody struct {
	Seq        int64           `json:"seq"`
	ReceivedAt time.Time       `json:"received_at"`
	Incident   string          `json:"incident,omitempty"`
	Event      json.RawMessage `json:"event"` // CloudEvents, as on the broker
}

func apiEventOf(r store.Received) apiEventBody {
	event, err := json.Marshal(&r.Event)
	if err != nil { // it was read from columns, since the body was cut
		event = []byte("null")
	}
	return apiEventBody{r.Seq, r.At, r.Incident, event}
}

type apiEntryBody struct {
	watch.Entry
	Text string `json:"text"`
}

func apiEntryOf(e watch.Entry) apiEntryBody { return apiEntryBody{e, words.English.Entry(e)} }

type apiClusterBody struct {
	Name   string        `json:"name"`
	Mode   watch.Mode    `json:"mode"`
	SeenAt time.Time     `json:"seen_at,omitzero"`
	Stale  bool          `json:"stale"`
	Nodes  []apiNodeBody `json:"nodes"`
}

type apiNodeBody struct {
	Addr   string    `json:"addr"`
	Up     bool      `json:"up"`
	DownAt time.Time `json:"down_at,omitzero"`
	Role   string    `json:"role,omitempty"`
	Master string    `json:"master,omitempty"`
	Shard  string    `json:"shard,omitempty"`
	Epoch  int64     `json:"epoch"`
}

func apiClusterOf(c clusterHealth) apiClusterBody {
	return apiClusterBody{c.Name, c.Mode, c.SeenAt, c.Stale, convert(c.Nodes, func(n watch.Node) apiNodeBody {
		return apiNodeBody{n.Addr, n.Up, n.DownAt, n.Role, n.Master, n.Shard, n.Epoch}
	})}
}

type apiServiceBody struct {
	Service    string    `json:"service"`
	Instance   string    `json:"instance"` // that it was heard of last
	ReceivedAt time.Time `json:"received_at"`
	Every      float64   `json:"every_seconds"`
	Silent     bool      `json:"silent"`
}

func apiServiceOf(s serviceHealth) apiServiceBody {
	return apiServiceBody{s.Service, s.Instance, s.ReceivedAt, s.Every.Seconds(), s.Silent}
}

type apiSilenceBody struct {
	ID       int64              `json:"id"`
	Matchers []incident.Matcher `json:"matchers"`
	Start    time.Time          `json:"start"`
	End      time.Time          `json:"end"`
	Author   string             `json:"author"`
	Comment  string             `json:"comment"`
	EndedBy  string             `json:"ended_by,omitempty"`
	Active   bool               `json:"active"`
}

func apiSilenceOf(s incident.Silence) apiSilenceBody {
	return apiSilenceBody{s.ID, s.Matchers, s.Start, s.End, s.Author, s.Comment, s.EndedBy, s.Active(time.Now())}
}

type apiAuditBody struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	Remote  string    `json:"remote"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail,omitempty"`
}

func apiAuditOf(l store.AuditLine) apiAuditBody {
	return apiAuditBody{l.ID, l.At, l.Who, l.Remote, l.Action, l.Subject, l.Detail}
}
