package monitor

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// Incidents has the incidents of the moment. *store.Store is one.
type Incidents interface {
	Current(ctx context.Context) (store.Snapshot, error)
}

// Clusters knows the state of the watched Redis servers. *watch.Watcher is one.
type Clusters interface {
	Clusters() []watch.Cluster
}

// State is a prometheus.Collector of the present state, read at each scrape, and
// counts the changes in Redis.
type State struct {
	incidents Incidents
	clusters  Clusters
	log       *slog.Logger
	changes   *prometheus.CounterVec
}

var (
	incidentsOpen = prometheus.NewDesc("belay_monitor_incidents_open",
		"Incidents that are not resolved, by cause.", []string{"cause"}, nil)
	nodeUp = prometheus.NewDesc("belay_monitor_redis_node_up",
		"1 if the Redis node answered last.", []string{"cluster", "node"}, nil)
	nodeAnswer = prometheus.NewDesc("belay_monitor_redis_answer_seconds",
		"How long the last answer of the Redis node took.", []string{"cluster", "node"}, nil)
)

// counted are the kinds of changes whose counters begin at 0.
var counted = []watch.Kind{watch.Failover, watch.Restart, watch.Split, watch.Eviction, watch.Flush, watch.Deletion, watch.Down}

// NewState returns a State. clusters may be nil. A nil logger is silent.
func NewState(incidents Incidents, clusters Clusters, logger *slog.Logger) *State {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &State{incidents: incidents, clusters: clusters, log: logger, changes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "belay_monitor_redis_changes_total",
		Help: "Changes seen in Redis, by cluster and kind, such as failover, restart, eviction.",
	}, []string{"cluster", "kind"})}
	for _, c := range s.watched() {
		for _, kind := range counted {
			s.changes.WithLabelValues(c.Name, string(kind))
		}
	}
	return s
}

func (s *State) watched() []watch.Cluster {
	if s.clusters == nil {
		return nil
	}
	return s.clusters.Clusters()
}

// Count counts changes.
func (s *State) Count(entries []watch.Entry) {
	for _, e := range entries {
		s.changes.WithLabelValues(e.Cluster, string(e.Kind)).Inc()
	}
}

// Describe implements prometheus.Collector.
func (s *State) Describe(ch chan<- *prometheus.Desc) {
	ch <- incidentsOpen
	ch <- nodeUp
	ch <- nodeAnswer
	s.changes.Describe(ch)
}

const collectTimeout = 2 * time.Second

// Collect implements prometheus.Collector. While the store does not answer,
// nothing is said of incidents: 0 would be good news.
func (s *State) Collect(ch chan<- prometheus.Metric) {
	s.changes.Collect(ch)
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	now, err := s.incidents.Current(ctx)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelError, "store does not answer", slog.Any("error", err))
	} else {
		count := make(map[incident.Cause]int)
		for _, i := range now.Incidents {
			if i.State.Open() {
				count[i.Cause]++
			}
		}
		for _, cause := range incident.Causes {
			ch <- prometheus.MustNewConstMetric(incidentsOpen, prometheus.GaugeValue, float64(count[cause]), string(cause))
		}
	}
	for _, c := range s.watched() {
		for _, n := range c.Nodes {
			up := 0.0
			if n.Up {
				up = 1
			}
			ch <- prometheus.MustNewConstMetric(nodeUp, prometheus.GaugeValue, up, c.Name, n.Addr)
			ch <- prometheus.MustNewConstMetric(nodeAnswer, prometheus.GaugeValue, n.Took.Seconds(), c.Name, n.Addr)
		}
	}
}
