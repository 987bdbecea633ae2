package quorumlock

import "github.com/belaygo/belay/lock/lockengine"

// WatchLoss implements lockengine.LossWatcher by the nodes that do. One report is enough: the renewal that
// follows asks all nodes. If a majority still has the lock, the lease goes on, and the renewal
// acquires the lock again at the node that has reported its loss.
func (e *engine) WatchLoss(r lockengine.Request, lost func()) (stop func()) {
	var stops []func()
	for _, node := range e.nodes {
		w, ok := node.(lockengine.LossWatcher)
		if !ok {
			continue
		}
		_ = call("watch a lock", func() error {
			stops = append(stops, w.WatchLoss(r, lost))
			return nil
		})
	}
	return func() {
		for _, stop := range stops {
			defer stop() // also if another panics
		}
	}
}
