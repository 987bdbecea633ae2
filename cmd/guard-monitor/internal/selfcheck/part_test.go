package selfcheck

import (
	"errors"
	"testing"
	"time"
)

// After this process or its host stood still, nothing is known of the time before.
func TestStall(t *testing.T) {
	w := newWatched(Part{}, time.Minute)
	now, away := time.Now(), errors.New("away")
	w.note(now, away, false)
	now = now.Add(10 * time.Minute)
	w.note(now, away, true)
	if s, _ := w.look(now); s.failed {
		t.Error("failed, though nothing was checked for ten minutes")
	}
	now = now.Add(time.Minute)
	w.note(now, away, false)
	if s, _ := w.look(now); !s.failed {
		t.Error("not failed after a minute of errors")
	}
	now = now.Add(10 * time.Minute)
	w.note(now, away, true)
	if s, _ := w.look(now); !s.failed {
		t.Error("a stall ended a failure")
	}
	w.note(now, nil, false)
	now = now.Add(10 * time.Minute)
	w.note(now, nil, true)
	if _, well := w.look(now); well {
		t.Error("well, though nothing was checked for ten minutes")
	}
}
