package main

import (
	"context"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// watched tells the monitor what happens to the Redis in this process. A
// watch.Watcher asks real servers, which count the commands that they are sent;
// miniredis does not, so the demo tells what it did itself.
type watched struct {
	store *store.Store
}

const redisName = "redis"

// Locate implements incident.Locator: all locks are on the one server.
func (watched) Locate(notify.Place) (watch.Location, bool) {
	return watch.Location{Cluster: redisName, SeenAt: time.Now()}, true
}

// saw records that somebody called a command once since a time.
func (w watched) saw(ctx context.Context, kind watch.Kind, command, node string, since time.Time) error {
	return w.store.AddEntries(ctx, []watch.Entry{{
		Kind: kind, Cluster: redisName, Node: node, Since: since, At: time.Now(),
		Numbers: map[string]int64{command: 1, watch.Callers: 0},
	}})
}
