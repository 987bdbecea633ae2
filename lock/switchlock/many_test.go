package switchlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/sqllock"
)

// Ten thousand locks that are held go from Redis to a table, and back, and none is lost.
func TestManyLeasesMove(t *testing.T) {
	t.Parallel()
	const leases, ttl = 10_000, 20 * time.Second
	where := place{Redis: startRedis(t).Addr, SQL: teststack.MySQL(t), Source: teststack.Postgres(t), Record: "many", TTL: ttl}
	migrate(t, "mysql", where.SQL, sqllock.MySQL)
	migrate(t, "pgx", where.Source, sqllock.Postgres)
	e, closeAll, err := connect(text(t, where))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeAll)
	l, err := lock.New(e, lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())

	held := make([]*lock.Lease, leases)
	parallel(t, leases, func(i int) (err error) {
		held[i], err = l.Acquire(t.Context(), fmt.Sprint("many", i))
		return err
	})
	for _, name := range []string{"sql", "redis"} {
		r := to(t, e, name)
		eventually(t, "settled in "+name, settled(e, r.Epoch))
		lost := 0
		for _, lease := range held {
			if lease.Err() != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Fatalf("%d of %d locks were lost on their way to %s", lost, leases, name)
		}
	}
	parallel(t, leases, func(i int) error { return held[i].Release(t.Context()) })
}

// parallel calls f for 0 to n-1, some at a time.
func parallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
