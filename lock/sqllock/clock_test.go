package sqllock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/sqllock"
)

// A server's clock is set. Forward, it ends locks early, and their holders learn of it.
// Back, it takes none away, and tokens grow.
func TestClockIsSet(t *testing.T) {
	for _, server := range []string{"mariadb", "postgres"} { // MySQL's own libc and libfaketime don't get along
		t.Run(server, func(t *testing.T) {
			set := clock(t)
			db := teststack.StartDatabase(t, "clock", server)
			set("+0")
			migrate(t, db.DSN)
			e, other := open(t, db.DSN), open(t, db.DSN)
			awaitClock(t, other, 0)

			last := setForward(t, e, other, set)
			setBack(t, e, other, set, last)
			set("+0")
		})
	}
}

// clock has servers that are started next read how far their clock is off from a file.
func clock(t *testing.T) (set func(off string)) {
	t.Helper()
	libs, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(libs) == 0 {
		teststack.Missing(t, "libfaketime is not installed")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "clock")
	set = func(off string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(off+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{filepath.Dir(dir), dir} { // PostgreSQL has a user of its own
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set("+0")
	for name, value := range map[string]string{
		"LD_PRELOAD": libs[0], "FAKETIME_TIMESTAMP_FILE": path, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1",
	} {
		t.Setenv(name, value)
	}
	return set
}

// awaitClock waits until the server's clock is off by so much.
func awaitClock(t *testing.T, e *sqllock.Engine, off time.Duration) {
	t.Helper()
	testwait.Until(t, "its clock is set", func() bool {
		r := lock.Request{Key: "clock" + time.Now().String(), Owner: "me:1"}
		grant, err := e.Acquire(t.Context(), r, ttl)
		if err != nil {
			return false
		}
		return time.UnixMicro(grant.Token/1024).Sub(time.Now().Add(off)).Abs() < time.Minute
	})
}

func setForward(t *testing.T, e, other *sqllock.Engine, set func(string)) (last int64) {
	t.Helper()
	holder := newLocker(t, e, lock.Config{TTL: 2 * time.Second})
	lease, err := holder.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	set("+3600")
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
func setBack(t *testing.T, e, other *sqllock.Engine, set func(string), last int64) {
	t.Helper()
	set("-3600")
	awaitClock(t, e, -time.Hour)
	if err := other.Renew(t.Context(), []lock.Request{theirs}, time.Minute)[0]; err != nil {
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
