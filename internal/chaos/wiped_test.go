package chaos_test

import (
	"maps"
	"sync"
	"time"
)

// wiped is when locks were wiped, a moment ago. The holder of a lock that was wiped may be
// about to write: then a lost COMMIT of the next holder is hardest to resolve.
type wiped struct {
	mu sync.Mutex
	at map[string]time.Time
}

// aMoment is how long a wipe is remembered.
const aMoment = 50 * time.Millisecond

func (w *wiped) note(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		w.at = make(map[string]time.Time)
	}
	maps.DeleteFunc(w.at, func(_ string, at time.Time) bool { return time.Since(at) > aMoment })
	w.at[key] = time.Now()
}

// lately reports whether the lock on key was wiped in the last 50 ms.
func (w *wiped) lately(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.at[key]
	return ok && time.Since(at) < aMoment
}
