package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// TestNoConnection: a caller that gets no connection for half of the lock's ttl may come again.
// Its own context has not ended, and the error does not say so.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		pool, err := e.db.DB()
		wantNil(e.t, err)
		pool.SetMaxOpenConns(1)
		taken, err := pool.Conn(bg)
		wantNil(e.t, err)
		locker, err := lock.New(e.Engine(), lock.Config{TTL: time.Second})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "short", Publisher: &e.Events})
		wantNil(e.t, err)
		err = g.Apply(bg, "k", guard.Insert(&Order{No: "a"}))
		if !guard.Transient(err) || errors.Is(err, context.DeadlineExceeded) {
			e.t.Errorf("error is %v, want a transient one that is no end of a context", err)
		}
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		wantIs(e.t, g.Apply(ctx, "k", guard.Insert(&Order{No: "a"})), context.DeadlineExceeded)
		wantNil(e.t, taken.Close())
		wantNil(e.t, g.Apply(bg, "k", guard.Insert(&Order{No: "a"})))
		wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg)))
		e.wantNoEvent()
	})
}
