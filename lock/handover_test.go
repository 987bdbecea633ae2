package lock_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
)

func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		first := acquire(t, l, "k")
		w := wait(t, l, "k")
		release(t, first)
		second := w.got(t)
		engine.wantSent(t, requests{acquire: 1})
		if second.Grant().Owner != first.Grant().Owner || second.Grant().Place != first.Grant().Place {
			t.Errorf("owner %s on %+v, want %s on %+v", second.Grant().Owner, second.Grant().Place, first.Grant().Owner, first.Grant().Place)
		}
		if second.Grant().Token != first.Grant().Token+1 || second.Grant().FirstToken != first.Grant().Token {
			t.Errorf("tokens %d to %d after %d", second.Grant().FirstToken, second.Grant().Token, first.Grant().Token)
		}
		wantAlive(t, second, true)
		_, err := newLocker(t, engine, lock.Config{}).TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", first.Grant().Owner)

		release(t, second)
		engine.wantSent(t, requests{acquire: 2, release: 1})
		third := acquire(t, l, "k")
		if third.Grant().Token <= first.Grant().Token+1023 || third.Grant().FirstToken != third.Grant().Token {
			t.Errorf("tokens %d to %d, want the engine's next", third.Grant().FirstToken, third.Grant().Token)
		}
	})
}

// When the window is over, one hand-over takes place nevertheless, and then the
// lock is really released.
func TestHandOverAfterWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		first := acquire(t, l, "k")
		w2, w3 := wait(t, l, "k"), wait(t, l, "k")
		pass(time.Minute)
		release(t, first)
		second := w2.got(t)
		if second.Grant().Owner != first.Grant().Owner {
			t.Error("the lock was not handed over")
		}
		release(t, second)
		third := w3.got(t)
		if third.Grant().Owner == first.Grant().Owner || third.Grant().Token <= second.Grant().Token {
			t.Errorf("owner %s, token %d after %s, %d: want a new grant", third.Grant().Owner, third.Grant().Token, second.Grant().Owner, second.Grant().Token)
		}
		if sent := engine.sent(); sent.acquire != 2 || sent.release != 1 {
			t.Errorf("requests = %+v, want 2 acquires, 1 release", sent)
		}
	})
}

func TestHandOverWindow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		window time.Duration
		grants int // of the engine, for five callers who hold it for 4 ms each
	}{
		{"default", 0, 2},        // 1 2 3 | 4 5
		{"short", 1, 3},          // 1 2 | 3 4 | 5
		{"off", -1, 5},           // 1 | 2 | 3 | 4 | 5
		{"long", time.Second, 1}, // 1 2 3 4 5
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{HandOver: tt.window})
				lease := acquire(t, l, "k")
				for range 4 {
					w := wait(t, l, "k")
					pass(4 * time.Millisecond)
					release(t, lease)
					lease = w.got(t)
				}
				release(t, lease)
				engine.wantSent(t, requests{acquire: tt.grants, release: tt.grants})
			})
		})
	}
}

// Between two tokens of the engine there are 1023 others.
func TestTokensOfHandOvers(t *testing.T) {
	const callers = 2500
	synctest.Test(t, func(t *testing.T) { // no time passes: the window stays open
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		var order, want []int
		var leases []*lock.Lease
		for i := range callers {
			want = append(want, i)
			go func() {
				lease, err := l.Acquire(t.Context(), "k")
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				order, leases = append(order, i), append(leases, lease)
				release(t, lease)
			}()
			synctest.Wait()
		}
		release(t, lease)
		synctest.Wait()
		if !slices.Equal(order, want) {
			t.Error("the callers did not come first in, first out")
		}
		for i, next := range leases {
			if next.Grant().Token <= lease.Grant().Token {
				t.Fatalf("token %d of caller %d after %d", next.Grant().Token, i, lease.Grant().Token)
			}
			if n := next.Grant().Token - next.Grant().FirstToken; n != int64(i+1)%1024 {
				t.Fatalf("caller %d has token %d after the first, want %d", i, n, (i+1)%1024)
			}
			lease = next
		}
		engine.wantSent(t, requests{acquire: 3, release: 3})
	})
}
