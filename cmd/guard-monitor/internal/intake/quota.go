package intake

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
)

// A quota is a Sender with its limits, so that it can't starve others: how many of its requests are
// served at a time, and how many events and heartbeats it may post.
type quota struct {
	Sender

	token      [sha256.Size]byte
	slots      chan struct{}
	events     *budget // also for requests that are no event
	heartbeats *budget
	lines      lograte.Limit // of log lines about requests that were refused or limited

	mu         sync.Mutex
	rejectedAt time.Time
}

func newQuota(s Sender, token [sha256.Size]byte) *quota {
	return &quota{
		Sender: s, token: token, slots: make(chan struct{}, senderSlots),
		events: newBudget(s.EventsPerSecond, s.Burst), heartbeats: newBudget(s.EventsPerSecond, s.Burst),
	}
}

// reject notes that a heartbeat was rejected, or may have been.
func (q *quota) reject() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rejectedAt = time.Now()
}

func (q *quota) rejected() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rejectedAt
}

// RejectedAt returns when a heartbeat of the service was, or may have been, rejected last because
// its sender was over its limits. It returns zero if that never happened. The silence of the
// service before that time proves nothing.
func (e *Endpoint) RejectedAt(service string) (last time.Time) {
	for _, q := range e.senders {
		if at := q.rejected(); q.speaksFor(service) && at.After(last) {
			last = at
		}
	}
	return last
}
