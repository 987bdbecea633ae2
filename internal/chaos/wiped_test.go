package chaos_test

import (
	"sync"
	"time"
)

// wiped is when locks were wiped. The holder of a lock that was wiped may be about to
// write: then a lost COMMIT of the next holder is hardest to resolve.
type wiped struct{ keys sync.Map }

func (w *wiped) note(key string) { w.keys.Store(key, time.Now()) }

// lately reports whether the lock on key was wiped in the last 50 ms.
func (w *wiped) lately(key string) bool {
	at, ok := w.keys.Load(key)
	return ok && time.Since(at.(time.Time)) < 50*time.Millisecond
}
