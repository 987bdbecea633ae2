package sqllock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/sqllock"
)

// A server's clock is set. Forward, it ends locks early, and their holders learn of it.
// Back, it takes none away, and tokens grow.
func TestClockIsSet(t *testing.T) {
	for _, server := range []string{"mariadb", "postgres"} { // MySQL comes with a libc of its own
		t.Run(server, func(t *testing.T) {
			c := newClock(t)
			db := teststack.StartDatabase(t, "clock", server)
			migrate(t, db.DSN)
			e, other := open(t, db.DSN), open(t, db.DSN)
			awaitClock(t, other, 0)

			last := setForward(t, e, other, c)
			setBack(t, e, other, c, last)
			c.Set(0)
		})
	}
}

// newClock is the clock of servers that are started next.
func newClock(t *testing.T) *teststack.Clock {
	t.Helper()
	c := teststack.NewClock(t)
	for _, setting := range c.Env {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	return c
}

// awaitClock waits until the server's clock is off by so much.
func awaitClock(t *testing.T, e sqllock.Engine, off time.Duration) {
	t.Helper()
	testwait.Until(t, "its clock is set", func() bool {
		r := lockengine.Request{Key: "clock" + time.Now().String(), Owner: "me:1"}
		grant, err := e.Acquire(t.Context(), r, ttl)
		if err != nil {
			return false
		}
		return time.UnixMicro(grant.Token/1024).Sub(time.Now().Add(off)).Abs() < time.Minute
	})
}

func setForward(t *testing.T, e, other sqllock.Engine, c *teststack.Clock) (last int64) {
	t.Helper()
	holder := newLocker(t, e, lock.Config{TTL: 2 * time.Second})
	lease, err := holder.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	c.Set(time.Hour)
	awaitClock(t, other, time.Hour)
	next := acquire(t, other, theirs, time.Minute) // it has expired
	<-lease.Context().Done()
	wantIs(t, lease.Release(t.Context()), lock.ErrLost)
	if next.Token <= lease.Grant().Token {
		t.Errorf("token %d after %d", next.Token, lease.Grant().Token)
	}
	return next.Token
}

// setBack finds "k" held by theirs, by the clock that is an hour ahead.
func setBack(t *testing.T, e, other sqllock.Engine, c *teststack.Clock, last int64) {
	t.Helper()
	c.Set(-time.Hour)
	awaitClock(t, e, -time.Hour)
	if err := other.Renew(t.Context(), []lockengine.Request{theirs}, time.Minute)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	if _, err := e.Acquire(t.Context(), mine, time.Minute); err == nil {
		t.Error("a lock was granted twice")
	}
	release(t, other, theirs)
	if token := acquire(t, e, mine, time.Minute).Token; token < last+1024 {
		t.Errorf("token %d after %d", token, last)
	}
	release(t, e, mine)
}
