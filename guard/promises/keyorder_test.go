package promises_test

import (
	"slices"
	"testing"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// TestKeysOfRequestsComeFirst: the order of keys is that of their bytes, with those of requests
// first, whichever of them the operation serves.
func TestKeysOfRequestsComeFirst(t *testing.T) {
	t.Parallel()
	e := onSQLite(t)
	wantNil(t, once.Migrate(bg, e.db))
	engine := &orderly{Engine: memlock.New()}
	g := e.guardOn(engine, guard.Config{})
	a, b := request("a"), request("b")
	want := []string{a.Key(), b.Key(), "a", "z"}
	slices.Sort(want[:2])
	for name, do := range map[string]func(...guard.Option) error{
		"For a":     func(o ...guard.Option) error { return g.Do(bg, "a", nop, append(o, guard.For(a))...) },
		"For b":     func(o ...guard.Option) error { return g.Do(bg, b.Key(), nop, append(o, guard.For(b))...) },
		"neither":   func(o ...guard.Option) error { return g.Do(bg, "z", nop, o...) },
		"a's key":   func(o ...guard.Option) error { return g.Do(bg, a.Key(), nop, o...) },
		"c, as For": func(o ...guard.Option) error { return g.Do(bg, "z", nop, append(o, guard.For(request("c")))...) },
	} {
		engine.keys = nil
		wantNil(t, do(guard.Also("z"), guard.Also(b.Key()), guard.Also("a"), guard.Also(a.Key())))
		if !slices.Equal(engine.keys, want) {
			t.Errorf("%s: acquired %q, want %q", name, engine.keys, want)
		}
	}
}
