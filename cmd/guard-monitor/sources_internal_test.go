package main

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// After a heartbeat from the broker was not stored, the silence of a service proves nothing. What a
// sender with too many services causes does not count.
func TestHeartbeatsThatAreNotStored(t *testing.T) {
	t.Parallel()
	s := sources{unstored: new(atomic.Int64)}
	s.noteUnstored(nil)
	s.noteUnstored(store.ErrManyServices)
	if at := s.rejectedAt("orders"); !at.IsZero() {
		t.Errorf("all are stored: rejected at %v", at)
	}
	s.noteUnstored(errors.New("disk full"))
	if at := s.rejectedAt("orders"); time.Since(at) > time.Minute {
		t.Errorf("one is not stored: rejected at %v", at)
	}
}
