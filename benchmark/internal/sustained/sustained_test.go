package sustained

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

func TestStepsLeaveOutWhatWouldBeTheSame(t *testing.T) {
	c := Config{
		Config:      stage.Config{Methods: []shop.Method{shop.Pessimistic, shop.Belay}},
		Concurrency: []int{1, 2}, Keys: []string{Uniform, Hot}, Repeats: []string{AtOnce, Sequence},
	}
	seen := make(map[string]int)
	for _, s := range c.steps() {
		seen[s.Method+" "+s.Keys+" "+s.Repeats]++
	}
	want := []string{
		"pessimistic uniform at-once", "belay uniform at-once", "belay uniform sequence", "pessimistic hot at-once", "belay hot at-once",
	}
	for _, k := range want {
		if seen[k] != 2 {
			t.Errorf("%d steps of %s, want one per number of users", seen[k], k)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("steps %v, want %v", seen, want)
	}
}

// drawn counts how often each path is asked for by users who draw in turn.
func drawn(m shop.Method, keys, repeats string, draws int) map[string]int {
	s := newSource(&stage.Stage{Addrs: []string{"a"}}, m, keys, repeats, "S", []int64{11, 22, 33})
	paths := make(map[string]int)
	for i := range draws {
		for _, r := range s.next(i % 4) {
			paths[r.Path]++
		}
	}
	return paths
}

func TestSource(t *testing.T) {
	for _, tc := range []struct {
		keys, repeats string
		draws         int
		orders, each  int
	}{
		{Uniform, None, 100, 100, 1},
		{Uniform, AtOnce, 100, 50, 2},
		{Uniform, Sequence, 100, 100, 2},
		{Hot, AtOnce, 3 * hotRepeats, 3, hotRepeats},
	} {
		paths := drawn(shop.Belay, tc.keys, tc.repeats, tc.draws)
		if len(paths) != tc.orders {
			t.Errorf("%s %s: %d orders, want %d", tc.keys, tc.repeats, len(paths), tc.orders)
		}
		for path, n := range paths {
			if n != tc.each || !strings.HasPrefix(path, "/belay?order=S-") {
				t.Errorf("%s %s: %s %d times, want %d", tc.keys, tc.repeats, path, n, tc.each)
			}
		}
	}
	if zipf := drawn(shop.Belay, Zipf, None, 1000); zipf["/belay?order=S-000000000"] < 50 || len(zipf) < 50 {
		t.Errorf("zipf: the first of %d orders is wanted %d times", len(zipf), zipf["/belay?order=S-000000000"])
	}
	if hot := drawn(shop.Pessimistic, Hot, None, 100); len(hot) != 1 || hot["/pessimistic?item=11"] != 100 {
		t.Errorf("hot item: %v", hot)
	}
	if uniform := drawn(shop.Pessimistic, Uniform, None, 1000); len(uniform) != 3 {
		t.Errorf("uniform items: %v", uniform)
	}
}
