package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
)

// The wall clock may be set while a Locker lives, by NTP after a boot or when a
// virtual machine resumes. The times of later leases, and of those that are held,
// are times of the clock as it is then.
func TestLeaseTimesFollowTheWallClock(t *testing.T) {
	for _, step := range []time.Duration{0, time.Minute, time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLocker(t, newFaults(), lock.Config{TTL: ttl})
				before := acquire(t, l, "before")
				pass(time.Second)
				l.SetClock(step)
				after := acquire(t, l, "after")
				now := time.Now().Add(step)
				for _, tt := range []struct {
					what      string
					got, want time.Time
				}{
					{"a lock that was granted before", before.Grant().AcquiredAt, now.Add(-time.Second)},
					{"the deadline of it", before.Grant().Deadline, now.Add(believed - time.Second)},
					{"a lock that was granted after", after.Grant().AcquiredAt, now},
					{"the deadline of that", after.Grant().Deadline, now.Add(believed)},
				} {
					if got, want := tt.got.Round(0), tt.want.Round(0); !got.Equal(want) {
						t.Errorf("%s: off by %v", tt.what, got.Sub(want))
					}
				}
				wantAlive(t, before, true) // a lease ends by the monotonic clock
			})
		})
	}
}
