package intake

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
)

// A quota is a Sender with what it may use, and has used, so that it can't starve others:
// a part of the requests that are taken at a time, its events, and its heartbeats.
type quota struct {
	Sender

	token      [sha256.Size]byte
	slots      chan struct{}
	events     *budget // also of what is no event
	heartbeats *budget
	lines      lograte.Limit // about requests for which it was refused, or asked to wait

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

// RejectedAt returns when a heartbeat of the service was rejected last because its sender
// was over its limits, or may have been; zero if never. The silence of the service before
// that proves nothing.
func (e *Endpoint) RejectedAt(service string) (last time.Time) {
	for _, q := range e.senders {
		if at := q.rejected(); q.speaksFor(service) && at.After(last) {
			last = at
		}
	}
	return last
}
