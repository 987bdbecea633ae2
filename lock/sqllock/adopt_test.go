package sqllock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belaygo/belay/lock/lockengine"
)

// A request that the table has no room for is in nobody's way.
func TestAdoptLongKey(t *testing.T) {
	dsn := file(t)
	migrate(t, dsn)
	e := open(t, dsn)
	long := lockengine.Request{Key: strings.Repeat("k", 513), Owner: "me:1"}
	for _, rs := range [][]lockengine.Request{{mine, long}, {long}} {
		errs := e.Adopt(t.Context(), rs, ttl)
		if n := len(rs); len(errs) != n || errs[n-1] == nil || n > 1 && errs[0] != nil {
			t.Errorf("%d requests: %v", n, errs)
		}
	}
}

// Adopt acquires free locks, renews those of the owner, and leaves those of other owners.
func TestAdopt(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		ctx, e, other := t.Context(), open(t, dsn), open(t, dsn)
		var rs []lockengine.Request
		for i := range 600 { // more than two statements hold
			rs = append(rs, lockengine.Request{Key: fmt.Sprint("adopt", i), Owner: "me:1"})
		}
		taken := lockengine.Request{Key: rs[300].Key, Owner: "they:1"}
		for _, r := range []lockengine.Request{rs[10], taken} {
			if _, err := other.Acquire(ctx, r, ttl); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			for i, err := range e.Adopt(ctx, rs, ttl) {
				if i == 300 != errors.Is(err, lockengine.ErrNotHeld) || i != 300 && err != nil {
					t.Fatalf("lock %d: %v", i, err)
				}
			}
		}
		for i, owner := range map[int]string{0: "me:1", 10: "me:1", 299: "me:1", 300: "they:1", 599: "me:1"} {
			if h, err := other.Inspect(ctx, rs[i].Key); err != nil || h.Owner != owner {
				t.Errorf("lock %d: %+v, %v", i, h, err)
			}
		}
		if err := other.Release(ctx, taken); err != nil {
			t.Error(err)
		}
		first, err := other.Acquire(ctx, taken, ttl)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Release(ctx, taken); err != nil {
			t.Error(err)
		}
		if errs := e.Adopt(ctx, rs[300:301], ttl); errs[0] != nil {
			t.Error(errs[0])
		}
		if g, err := e.Acquire(ctx, rs[300], ttl); err != nil || g.Token <= first.Token {
			t.Errorf("token %d after %d: %v", g.Token, first.Token, err)
		}
	})
}
