package chaos_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
)

// workers is how many processes work at a time, but in TestTransfers.
const workers = 4

// A crew is the workers of a run.
type crew struct {
	t       *report
	cluster *teststack.Cluster
	env     []string
	began   int64

	mu   sync.Mutex
	all  []*process
	live []*process // in the order of their numbers
}

// startCrew starts n workers. env is what they are told beside the locks.
func startCrew(t *report, n int, c *teststack.Cluster, env ...string) *crew {
	w := &crew{t: t, cluster: c, began: now()}
	w.env = append(env, "BELAY_CHAOS_REDIS="+strings.Join(c.Addrs, ","), "BELAY_CHAOS_BEGAN="+strconv.FormatInt(w.began, 10))
	for range n {
		w.hire()
	}
	return w
}

// at is how long the workers have worked.
func (w *crew) at() time.Duration { return time.Duration(now() - w.began) }

func (w *crew) hire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := startWorker(w.t, fmt.Sprintf("w%d", len(w.all)), w.env)
	w.all, w.live = append(w.all, p), append(w.live, p)
}

// replace hires another worker for one that is dead.
func (w *crew) replace(dead *process) {
	w.mu.Lock()
	w.live = slices.DeleteFunc(w.live, func(p *process) bool { return p == dead })
	w.mu.Unlock()
	w.hire()
}

// member returns one that is alive. Whoever takes steps that kill is the only one to ask.
func (w *crew) member(n int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[n%len(w.live)]
}

// wiped tells the workers that the lock on key was wiped.
func (w *crew) wiped(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.live {
		p.wiped(key)
	}
}

// finish has the workers end and returns what all of them saw.
func (w *crew) finish() (records []*record) {
	for _, p := range w.live {
		p.dismiss()
	}
	for _, p := range w.live {
		p.finish()
	}
	for _, p := range w.all {
		records = append(records, p.record)
	}
	return records
}

// policyOf is what the worker of a name, which ends in its number, does without a lock.
func policyOf(name string) guard.Policy {
	if (name[len(name)-1]-'0')%2 == 0 {
		return guard.FailClosed
	}
	return guard.DBOnly
}
