package redislock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
)

// A connection that breaks is replaced, and who waits is woken: a message may
// have been missed.
func TestWatchAfterReconnect(t *testing.T) {
	const name = "belay-cut"
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: teststack.Redis(t), ClientName: name})
	defer client.Close()
	e := openOn(t, client)
	defer e.Close(context.Background())
	key := teststack.Key(t, "cut")
	b, _ := watch(t, e, key)
	cutSubscriptions(t, cluster(t), name)
	b.wait(t, "the connection was cut")
	h := lockengine.Request{Key: key, Owner: "me:1"}
	acquire(t, e, h)
	release(t, e, h)
	b.wait(t, "released after the cut")
}

// cutSubscriptions ends the subscribing connections of a client.
func cutSubscriptions(tb testing.TB, c *redis.ClusterClient, name string) {
	tb.Helper()
	err := c.ForEachMaster(tb.Context(), func(ctx context.Context, node *redis.Client) error {
		list, err := node.Do(ctx, "client", "list", "type", "pubsub").Text()
		for line := range strings.Lines(list) {
			if !strings.Contains(line, " name="+name+" ") {
				continue
			}
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			if err := node.Do(ctx, "client", "kill", "id", id).Err(); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// Where there is no SPUBLISH, plain messages do it.
func TestWatchPlain(t *testing.T) {
	onPlain(t, func(t *testing.T, server *miniredis.Miniredis, client redis.UniversalClient) {
		e := openOn(t, client)
		defer e.Close(context.Background())
		b, _ := watch(t, e, "k")
		acquire(t, e, hold)
		release(t, e, hold)
		b.wait(t, "released")

		server.Close()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		b.wait(t, "the server was away")
		acquire(t, e, hold)
		release(t, e, hold)
		b.wait(t, "released after that")
	})
}
