package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// A scene is one step with a lock, and what was sent because of it.
type scene struct {
	name      string
	key       string
	calls     []call
	unordered bool // two threads sent at the same time
}

// A camera takes scenes with one lock.
type camera struct {
	*testing.T
	m      *monitor
	key    string
	scenes []scene
}

// scene takes what act sends, and what comes until the end is seen.
func (c *camera) scene(name string, act func(), end func([]call) bool) *scene {
	c.Helper()
	act()
	testwait.Until(c.T, name+": the last command", func() bool { return end(c.m.calls(c.key)) })
	c.scenes = append(c.scenes, scene{name: name, key: c.key, calls: c.m.take(c.T, c.key)})
	return &c.scenes[len(c.scenes)-1]
}

func atOnce([]call) bool { return true }

// sent counts the calls of that name; "eval" counts the scripts.
func sent(name string, calls []call) (n int) {
	for _, c := range calls {
		if c.name() == name || name == "eval" && c.isScript() {
			n++
		}
	}
	return n
}

// redissonScenes has Java threads do all that one can do with a lock.
func (s *stage) redissonScenes(t *testing.T, key string) []scene {
	t.Helper()
	c := &camera{T: t, m: s.monitor(t), key: key}
	a, b := s.thread(t, "a"), s.thread(t, "b")

	latchGone := func(calls []call) bool { return sent("del", calls) > 0 }
	waits := func(calls []call) bool { return sent("ssubscribe", calls) > 0 && sent("eval", calls) > 1 }
	woken := func(calls []call) bool { return latchGone(calls) && sent("sunsubscribe", calls) > 0 }

	c.scene("lock", func() { a.do(t, "lock", key) }, atOnce)
	renewal := *c.scene("renewal", func() {}, func(calls []call) bool { return len(calls) > 0 })
	c.scene("unlock", func() { a.do(t, "unlock", key) }, latchGone)
	c.scene("lock for a while", func() { a.do(t, "lease", key, lease) }, atOnce)
	c.scene("lock again", func() { a.do(t, "lease", key, lease) }, atOnce)
	c.scene("first unlock of two", func() { a.do(t, "unlock", key) }, latchGone)
	c.scene("refusal", func() { b.do(t, "try", key) }, atOnce)
	c.scene("wait", func() { b.begin(t, "lease", key, lease) }, waits)
	c.scene("unlock with a waiter", func() { a.do(t, "unlock", key) }, woken).unordered = true
	b.result(t)
	c.scene("force unlock", func() { a.do(t, "force", key) }, atOnce)
	return withoutRenewals(c.scenes, renewal.calls[0])
}

// withoutRenewals leaves one renewal in the scene of that name. The watchdog
// has a clock of its own, so there may be more in any scene.
func withoutRenewals(scenes []scene, renewal call) []scene {
	for i, sc := range scenes {
		scenes[i].calls = slices.DeleteFunc(sc.calls, func(c call) bool {
			return c.isScript() && c.args[1] == renewal.args[1]
		})
		if sc.name == "renewal" {
			scenes[i].calls = append([]call{renewal}, scenes[i].calls...)
		}
	}
	return scenes
}

// belayScenes has Go do those of the steps that it knows.
func (s *stage) belayScenes(t *testing.T, key string) []scene {
	t.Helper()
	c := &camera{T: t, m: s.monitor(t), key: key}
	other := newLocker(t, s.engine, ttl)
	var held *lock.Lease

	c.scene("lock", func() { held = acquire(t, s.locker, key) }, atOnce)
	c.scene("renewal", func() {}, func(calls []call) bool { return len(calls) > 0 })
	c.scene("refusal", func() {
		_, err := other.TryAcquire(t.Context(), key)
		wantHeld(t, err, held.Grant().Owner)
	}, atOnce)
	c.scene("unlock", func() { release(t, held) }, atOnce)
	return c.scenes
}

// written writes scenes for people and for the golden file. An owner has the
// same number in all scenes of a lock.
func written(scenes []scene) string {
	var text strings.Builder
	n := &names{}
	for _, sc := range scenes {
		if n.key != sc.key {
			n = &names{key: sc.key}
		}
		blocks := n.transcript(sc.calls)
		if sc.unordered {
			slices.Sort(blocks)
		}
		fmt.Fprintf(&text, "# %s\n%s\n", sc.name, strings.Join(blocks, ""))
	}
	return strings.TrimSuffix(text.String(), "\n")
}
