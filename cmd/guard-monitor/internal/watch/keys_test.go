package watch

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// called sets how often commands were called on a node of a world.
func (n *fake) called(calls map[string]int) {
	n.stats = "cmdstat_info:calls=1,usec=1\r\n"
	for name, count := range calls {
		n.stats += fmt.Sprintf("cmdstat_%s:calls=%d,usec=9\r\n", name, count)
	}
}

// calling is a world whose node a:1 tells of calls.
func calling(t *testing.T) (w *world, a *fake, calls map[string]int) {
	t.Helper()
	w = newWorld(t)
	a, calls = w.nodes["a:1"], map[string]int{"del": 5, "hdel": 900}
	a.called(calls)
	w.want(w.round()) // what was called before is not news
	return w, a, calls
}

func TestDeletionIsTold(t *testing.T) {
	w, a, calls := calling(t)
	before := w.now
	calls["del"]++
	calls["unlink"] = 2
	calls["hdel"] = 1000
	a.called(calls)
	e := w.want(w.round(), Deletion)
	if e.Node != "a:1" || !e.Since.Equal(before) || e.Numbers["del"] != 1 || e.Numbers["unlink"] != 2 || e.Numbers[Routine] != 0 {
		t.Errorf("entry %+v", e)
	}
	calls["flushall"] = 1
	a.called(calls)
	if e := w.want(w.round(), Flush); e.Numbers[FlushAll] != 1 || e.Numbers[KeysBefore] != 3 {
		t.Errorf("entry %+v", e)
	}
	a.called(map[string]int{"del": 2}) // CONFIG RESETSTAT
	w.want(w.round())
}

// TestReplicaRepeats: what a replica executes is its master's doing.
func TestReplicaRepeats(t *testing.T) {
	w := newWorld(t)
	c := w.nodes["c:1"]
	c.called(map[string]int{"del": 1})
	w.want(w.round())
	c.called(map[string]int{"del": 2, "flushall": 1})
	w.want(w.round())
}

// TestRoutineDeletions: where keys are deleted all the time, it is told so, and
// seldom.
func TestRoutineDeletions(t *testing.T) {
	w, a, calls := calling(t)
	var entries []Entry
	for range 600 {
		calls["del"] += 10
		a.called(calls)
		entries = append(entries, w.round()...)
	}
	told := int64(0)
	for i, e := range entries {
		told += e.Numbers["del"]
		want := int64(0)
		if i >= 4 {
			want = 1
		}
		if e.Kind != Deletion || e.Numbers[Routine] != want {
			t.Errorf("entry %d is %+v, want routine %d", i, e, want)
		}
	}
	if len(entries) > 4 && entries[4].At.Sub(entries[0].At) > 10*time.Second {
		t.Error("that it is routine is told late")
	}
	if len(entries) < 5 || len(entries) > 7 || told < 3000 {
		t.Errorf("%d entries tell of %d calls, want about 6 of most of 6000", len(entries), told)
	}
}

// TestExpiries: that keys expire is told as long as it is rare.
func TestExpiries(t *testing.T) {
	w := newWorld(t)
	entries := 0
	for n := range 100 {
		w.nodes["a:1"].stats = fmt.Sprintf("expired_keys:%d\r\n", n+1)
		for _, e := range w.round() {
			if e.Kind != Expiry || e.Node != "a:1" || e.Numbers[Expired] != 1 {
				t.Errorf("entry %+v", e)
			}
			entries++
		}
	}
	if entries != 1 {
		t.Errorf("%d entries, want 1", entries)
	}
}

func TestClockSet(t *testing.T) {
	w := newWorld(t)
	a := w.nodes["a:1"]
	tell := func(ahead time.Duration) {
		a.stats = fmt.Sprintf("server_time_usec:%d\r\n", w.now.Add(time.Second+ahead).UnixMicro())
	}
	tell(5 * time.Second) // that it is wrong is not news
	w.want(w.round())
	tell(5200 * time.Millisecond)
	w.want(w.round())
	tell(35 * time.Second)
	if e := w.want(w.round(), ClockSet); e.Numbers[ForwardMS] != 29800 {
		t.Errorf("entry %+v", e)
	}
	tell(0)
	if e := w.want(w.round(), ClockSet); e.Numbers[ForwardMS] != -35000 {
		t.Errorf("entry %+v", e)
	}
}

func TestCallers(t *testing.T) {
	list := []client{
		parseClient("id=7 addr=10.0.0.9:55 laddr=1:1 fd=8 name=cleanup age=5 idle=1 db=0 cmd=del user=ops lib-name= lib-ver="),
		parseClient("id=8 addr=10.0.0.8:55 name= idle=40 cmd=del user=default"),
		parseClient("id=9 addr=10.0.0.7:55 name= idle=0 cmd=evalsha user=default lib-name=redisson"),
	}
	for name, tt := range map[string]struct {
		list  []client
		names map[string]string
		count map[string]int64
	}{
		"one":        {list, map[string]string{Client: "10.0.0.9:55", ClientName: "cleanup", User: "ops"}, map[string]int64{"del": 1, Callers: 1}},
		"it is gone": {list[1:], nil, map[string]int64{"del": 1, Callers: 0}},
		"not listed": {nil, nil, map[string]int64{"del": 1}},
	} {
		calls := map[string]int64{"del": 1}
		if names := callers(tt.list, calls, 2*time.Second); !maps.Equal(names, tt.names) || !maps.Equal(calls, tt.count) {
			t.Errorf("%s: callers %v, %v, want %v, %v", name, names, calls, tt.names, tt.count)
		}
	}
	if !list[2].java() || list[0].java() {
		t.Error("Redisson is not known by its lib-name")
	}
}

// TestRemovals: only a master that lived all the time tells what was called.
func TestRemovals(t *testing.T) {
	was := &Node{Role: master, RunID: "r", calls: map[string]int64{"del": 1}}
	info := map[string]string{"role": "master", "run_id": "r", "cmdstat_info": "calls=1", "cmdstat_del": "calls=3,usec=1"}
	for name, change := range map[string]func(was *Node, info map[string]string){
		"another process": func(_ *Node, info map[string]string) { info["run_id"] = "s" },
		"a replica":       func(_ *Node, info map[string]string) { info["role"] = "slave" },
		"was a replica":   func(was *Node, _ map[string]string) { was.Role = replica },
		"did not tell":    func(was *Node, _ map[string]string) { was.calls = nil },
		"does not tell":   func(_ *Node, info map[string]string) { delete(info, "cmdstat_info") },
	} {
		was, info := *was, maps.Clone(info)
		change(&was, info)
		if got := (&look{info: info}).removals(&was); len(got) > 0 {
			t.Errorf("%s: removals %v, want none", name, got)
		}
	}
	if got := (&look{info: info}).removals(was); len(got) != 1 || got["del"] != 2 {
		t.Errorf("removals %v, want 2 of del", got)
	}
}

// TestFailedCalls: a command that failed removed nothing.
func TestFailedCalls(t *testing.T) {
	was := &Node{Role: master, RunID: "r", calls: map[string]int64{}}
	info := map[string]string{"role": "master", "run_id": "r", "cmdstat_info": "calls=1",
		"cmdstat_flushall": "calls=1,usec=9,usec_per_call=9.00,rejected_calls=0,failed_calls=1",
		"cmdstat_rename":   "calls=3,usec=9,usec_per_call=3.00,rejected_calls=4,failed_calls=1"}
	if got := (&look{info: info}).removals(was); len(got) != 1 || got["rename"] != 2 {
		t.Errorf("removals %v, want 2 of rename", got)
	}
}

// TestRoutineAsksSeldom: CLIENT LIST, for which a node stands still, is not asked
// for at each look, unless somebody flushed.
func TestRoutineAsksSeldom(t *testing.T) {
	w, a, calls := calling(t)
	look := func(name string) bool {
		calls[name]++
		a.called(calls)
		next := w.look("a:1", a)
		next.at = w.now.Add(time.Second)
		tells := next.tells(w.state.nodes["a:1"])
		w.round()
		return tells
	}
	asked := 0
	for range 120 {
		if look("del") {
			asked++
		}
	}
	if asked < 5 || asked > 7 {
		t.Errorf("asked %d times in 120 looks, want about 6", asked)
	}
	if !look("flushall") {
		t.Error("not asked who flushed")
	}
}
