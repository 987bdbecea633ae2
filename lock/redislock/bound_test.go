package redislock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
)

// A caller with much time gets an error when the client that was passed to New has
// dialled for long enough, and none that looks like the end of the caller's own
// context.
func TestRequestIsBounded(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		<-ended
		return nil, errors.New("no network")
	}})
	t.Cleanup(func() {
		close(ended)
		_ = client.Close()
	})
	e := openOn(t, client)
	for _, name := range []string{"acquire", "inspect"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := requests[name](ctx, e)
			if ctx.Err() != nil {
				t.Fatal("it has waited until the caller's context ended")
			}
			wantIs(t, err, lockengine.ErrNoAnswer)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v matches the end of the caller's context", err)
			}
		})
	}
}
