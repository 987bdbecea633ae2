package guard

import (
	"fmt"
	"testing"

	"github.com/belaygo/belay/lock"
)

// TestFirstLoss: an inherited lock concerns two callers, one that Close gave up nobody.
func TestFirstLoss(t *testing.T) {
	var (
		closed    = loss{"closed", fmt.Errorf("%w: %w", lock.ErrLost, lock.ErrClosed), false}
		own       = loss{"own", lock.ErrLost, false}
		other     = loss{"other", lock.ErrLost, false}
		inherited = loss{"inherited", lock.ErrLost, true}
		second    = loss{"second", lock.ErrLost, true}
	)
	for _, test := range []struct {
		all  []loss
		want string
	}{
		{nil, ""},
		{[]loss{closed}, "closed"},
		{[]loss{own, other}, "own"},
		{[]loss{closed, own}, "own"},
		{[]loss{own, closed}, "own"},
		{[]loss{own, inherited}, "inherited"},
		{[]loss{inherited, own}, "inherited"},
		{[]loss{inherited, second}, "inherited"},
	} {
		got := ""
		if l := firstLoss(test.all); l != nil {
			got = l.key
		}
		if got != test.want {
			t.Errorf("of %v the first is %q, want %q", test.all, got, test.want)
		}
	}
}
