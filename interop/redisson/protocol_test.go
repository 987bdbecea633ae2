package interop_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// sameWireFormat: both store a hash with one field, the owner, that counts its
// holds, and let all of it expire.
func sameWireFormat(t *testing.T, s *stage) string {
	key := teststack.Key(t, "订单:7") // the name's bytes must be the same, too
	a := s.thread(t, "a")
	owner := a.do(t, "lock", key)
	s.wantStored(t, key, owner)
	holder, err := s.engine.Inspect(t.Context(), key)
	if err != nil || holder.Owner != owner || holder.TTL <= 0 || holder.TTL > ttl {
		t.Errorf("Go sees %+v, %v; want Java's owner %s and what is left of %v", holder, err, owner, ttl)
	}
	a.do(t, "unlock", key)

	mine := acquire(t, s.locker, key)
	s.wantStored(t, key, mine.Grant().Owner)
	release(t, mine)
	return fmt.Sprintf("hash {%s: 1} by Java, {%s: 1} by Go", owner, mine.Grant().Owner)
}

func (s *stage) wantStored(t *testing.T, key, owner string) {
	t.Helper()
	kind, fields, left := s.stored(t, key)
	if kind != "hash" || !maps.Equal(fields, map[string]string{owner: "1"}) || left <= 0 || left > ttl {
		t.Errorf("stored is a %s %v that expires in %v; want the hash {%s: 1} and at most %v", kind, fields, left, owner, ttl)
	}
	if ownerID.FindString(owner) != owner {
		t.Errorf("owner is %q, want UUID:NUMBER", owner)
	}
}

// redissonSendsWhatItSent compares what Redisson sends with the golden file.
func redissonSendsWhatItSent(t *testing.T, s *stage) string {
	scenes := s.redissonScenes(t, teststack.Key(t, "golden"))
	got := written(scenes)
	path := filepath.Join("testdata", "redisson.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("Redisson %s does not send what is in %s (-update rewrites it):\n%s", s.java.version, path, difference(string(want), got))
	}
	return fmt.Sprintf("%d scenes as in %s", len(scenes), path)
}

// difference shows the lines from the first to the last that differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(w) > 0 && len(g) > 0 && w[0] == g[0] {
		w, g = w[1:], g[1:]
	}
	for len(w) > 0 && len(g) > 0 && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	return "- " + strings.Join(w, "\n- ") + "\n+ " + strings.Join(g, "\n+ ")
}

// sameEffects: the two ask differently, but what they change and whom they tell
// is the same.
func sameEffects(t *testing.T, s *stage) string {
	java := s.redissonScenes(t, teststack.Key(t, "effects"))
	goes := s.belayScenes(t, teststack.Key(t, "effects"))
	for _, g := range goes {
		j := java[slices.IndexFunc(java, func(j scene) bool { return j.name == g.name })]
		want, got := effects(j.key, j.calls), effects(g.key, g.calls)
		if !slices.Equal(want, got) {
			t.Errorf("%s: Redisson's effects are %q, Belay's %q\nof\n%s", g.name, want, got, written([]scene{j, g}))
		}
	}
	return fmt.Sprintf("%d steps compared", len(goes))
}

// sameBus: a Redis 7 cluster has two buses, and who listens on one does not
// hear what is told on the other.
func sameBus(t *testing.T, s *stage) string {
	key := teststack.Key(t, "bus")
	held := acquire(t, s.locker, key)
	a := s.thread(t, "a")
	a.begin(t, "lock", key)
	var sharded, plain int64
	testwait.Until(t, "a Java thread listens", func() bool {
		sharded, plain = s.subscribers(t, channel(key))
		return sharded+plain > 0
	})
	if sharded != 1 || plain != 0 {
		t.Errorf("%d sharded and %d plain subscriptions to %s, want one sharded", sharded, plain, channel(key))
	}

	m := s.monitor(t)
	release(t, held)
	told := fmt.Sprint(effects(key, m.take(t, key)))
	if want := "spublish redisson_lock__channel:{<lock>} 0"; !strings.Contains(told, want) {
		t.Errorf("effects of Go's release: %s, want %q among them", told, want)
	}
	a.result(t)
	a.do(t, "unlock", key)
	return "SSUBSCRIBE by Java, SPUBLISH by Go"
}
