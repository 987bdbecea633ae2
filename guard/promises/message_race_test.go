package promises_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/belaygo/belay/guard"
)

// Goroutines of one operation may send at once: each message has an id of its own.
func TestSendFromGoroutines(t *testing.T) {
	eachSQL(t, func(e *env) {
		const goroutines, each = 8, 5
		before := len(sentBy(e.t, e.db))
		wantNil(e.t, e.DoSQL(bg, "k", func(ctx context.Context, _ *sql.Tx) error {
			errs := make([]error, goroutines)
			var senders sync.WaitGroup
			for n := range goroutines {
				senders.Go(func() {
					for range each {
						if err := guard.SendSQL(ctx, guard.Message{Topic: "t"}); err != nil {
							errs[n] = err
						}
					}
				})
			}
			senders.Wait()
			for _, err := range errs {
				wantNil(e.t, err)
			}
			return nil
		}, guard.For(request(e.t.Name()))))
		if n := len(sentBy(e.t, e.db)) - before; n != goroutines*each {
			e.t.Errorf("%d messages were sent, want %d", n, goroutines*each)
		}
	})
}
