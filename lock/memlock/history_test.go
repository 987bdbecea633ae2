package memlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// To several Lockers on one engine, each lock is a mutex.
func TestHistory(t *testing.T) {
	const holds = 600
	engine := memlock.New()
	job := lockhistory.Job{Keys: []string{"a", "b", "c", "d"}, Workers: 16, Hold: 2 * time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var spans []lockhistory.Span
	var wg sync.WaitGroup
	for range 3 {
		l, err := lock.New(engine, lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		wg.Go(func() {
			job.Work(ctx, l, func(s lockhistory.Span) {
				mu.Lock()
				defer mu.Unlock()
				if spans = append(spans, s); len(spans) >= holds {
					stop()
				}
			})
		})
	}
	wg.Wait()
	for _, s := range spans {
		if s.End != lockhistory.Released {
			t.Errorf("without a fault: %+v", s)
		}
	}
	for _, wrong := range lockhistory.Judge(spans) {
		t.Error(wrong)
	}
}
