package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/notify"
)

// Watcher watches targets. It is safe for concurrent use.
type Watcher struct {
	cfg     Config
	targets []*target
	ready   chan struct{}

	mu       sync.Mutex
	clusters []Cluster              // by target, after its last round
	owners   [][]owner              // by target; those of a round are never changed
	seen     []map[string]time.Time // when each address answered last, by target
	running  bool
}

// New returns a Watcher. It connects to nothing: Run does.
func New(cfg Config) *Watcher {
	w := &Watcher{cfg: cfg.withDefaults(), ready: make(chan struct{})}
	for i, t := range cfg.Targets {
		w.targets = append(w.targets, newTarget(w.cfg, t, func(c *cluster) { w.publish(i, c) }))
		w.clusters = append(w.clusters, Cluster{Name: t.Name})
	}
	w.seen = make([]map[string]time.Time, len(cfg.Targets))
	w.owners = make([][]owner, len(cfg.Targets))
	return w
}

// ErrRunning is returned by Run of a Watcher that is running already.
var ErrRunning = errors.New("watch: running already")

// Run watches until ctx ends and returns ctx.Err(). It may be called once.
func (w *Watcher) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.running {
		w.mu.Unlock()
		return ErrRunning
	}
	w.running = true
	w.mu.Unlock()

	var first, all sync.WaitGroup
	first.Add(len(w.targets))
	for _, t := range w.targets {
		all.Go(func() { t.run(ctx, sync.OnceFunc(first.Done)) })
	}
	first.Wait()
	close(w.ready)
	all.Wait()
	<-ctx.Done()
	return ctx.Err()
}

// Ready is closed when all targets have been looked at once.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Clusters returns what is known of each target, in the order of the
// configuration.
func (w *Watcher) Clusters() []Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.clusters)
}

// Locate finds the target and the shard of the place of a lock. The node must be,
// or have been, one of the target's, under the address that the services know
// it by: a slot alone does not identify a cluster.
func (w *Watcher) Locate(p notify.Place) (Location, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.clusters {
		seenAt, known := w.seen[i][p.Node]
		if !known {
			continue
		}
		for _, o := range w.owners[i] {
			if slices.ContainsFunc(o.slots, func(s span) bool { return s.has(p.Slot) }) {
				return Location{c.Name, shardName(o.slots), seenAt}, true
			}
		}
		return Location{c.Name, "", seenAt}, true
	}
	return Location{}, false
}

// Location is where a lock is kept.
type Location struct {
	Cluster string    // name of the target
	Shard   string    // see Shard.Name
	SeenAt  time.Time // when its node last answered; zero = never
}

// publish makes the state of a target visible.
func (w *Watcher) publish(i int, c *cluster) {
	seen := maps.Clone(c.seen)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters[i], w.owners[i], w.seen[i] = c.Cluster, c.owners, seen
}
