package watch

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// world is a small cluster of two shards that a test changes from round to
// round.
type world struct {
	t     *testing.T
	now   time.Time
	state *cluster
	nodes map[string]*fake
}

type fake struct {
	id, runID, master string // master is the id of a replica's master
	slots             string
	epoch, offset     int
	replid2           string
	evicted           int
	stats             string // more lines of INFO
	doubts            string // addr of the node that it takes for failed
	err               error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Now(), state: newCluster("main"), nodes: map[string]*fake{
		"a:1": {id: "A", runID: "ra", slots: "0-8191", epoch: 1, offset: 100},
		"b:1": {id: "B", runID: "rb", slots: "8192-16383", epoch: 2, offset: 100},
		"c:1": {id: "C", runID: "rc", master: "A", epoch: 1, offset: 90},
	}}
	w.round()
	return w
}

// round looks at all nodes a second later.
func (w *world) round() []Entry {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	r := &round{ended: w.now, looks: make(map[string]*look), mode: Clustered}
	for addr, n := range w.nodes {
		r.looks[addr] = w.look(addr, n)
	}
	return w.state.compare(r)
}

func (w *world) look(addr string, n *fake) *look {
	if n.err != nil {
		return &look{at: w.now, err: n.err, refused: errors.Is(n.err, syscall.ECONNREFUSED), denied: forbidden(n.err)}
	}
	role, of := "master", ""
	if n.master != "" {
		role = "slave"
		for addr, m := range w.nodes {
			if m.id == n.master {
				host, port, _ := strings.Cut(addr, ":")
				of = "master_host:" + host + "\r\nmaster_port:" + port + "\r\nmaster_link_status:up\r\n"
			}
		}
	}
	info := fmt.Sprintf("# Server\r\nredis_mode:cluster\r\nrun_id:%s\r\nrole:%s\r\n%smaster_repl_offset:%d\r\nmaster_replid:h%s\r\nmaster_replid2:%s\r\nsecond_repl_offset:91\r\nevicted_keys:%d\r\ndb0:keys=3,expires=1\r\n%s",
		n.runID, role, of, n.offset, n.id, n.replid2, n.evicted, n.stats)
	var view strings.Builder
	for other, m := range w.nodes {
		flags, master := "master", "-"
		if m.master != "" {
			flags, master = "slave", m.master
		}
		if other == addr {
			flags = "myself," + flags
		} else if n.doubts == other {
			flags += ",fail?"
		} else if m.err != nil { // others have heard of it before
			flags += ",fail"
		}
		fmt.Fprintf(&view, "%s %s@1 %s %s 0 0 %d connected %s\n", m.id, other, flags, master, m.epoch, m.slots)
	}
	return &look{at: w.now, info: parseInfo(info), view: parseNodes(view.String()), serves: true}
}

// want expects entries of these kinds and returns the first.
func (w *world) want(got []Entry, kinds ...Kind) Entry {
	w.t.Helper()
	var have []Kind
	for _, e := range got {
		have = append(have, e.Kind)
	}
	if fmt.Sprint(have) != fmt.Sprint(kinds) {
		w.t.Fatalf("entries %v, want %v", have, kinds)
	}
	if len(got) == 0 {
		return Entry{}
	}
	return got[0]
}

func TestNothingChanges(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.want(w.round())
	}
	if n := len(w.state.Shards); n != 2 || w.state.Shards[0].Name != "0-8191" || len(w.state.Shards[0].Replicas) != 1 {
		t.Errorf("shards %+v", w.state.Shards)
	}
}

func TestTakeover(t *testing.T) {
	w := newWorld(t)
	a, c := w.nodes["a:1"], w.nodes["c:1"]
	a.err = syscall.ECONNREFUSED
	if e := w.want(w.round(), Down); e.Node != "a:1" || e.Shard != "0-8191" || e.Numbers[Refused] != 1 {
		t.Errorf("down %+v", e)
	}
	c.master, c.slots, c.epoch, c.replid2, a.slots = "", a.slots, 7, "hA", ""
	e := w.want(w.round(), Failover)
	if e.Node != "c:1" || e.Peer != "a:1" || e.Shard != "0-8191" || e.Numbers[OldEpoch] != 1 || e.Numbers[NewEpoch] != 7 ||
		e.Numbers[LostBytes] != 10 || !e.Since.Before(e.At) {
		t.Errorf("failover %+v", e)
	}
	a.err, a.runID, a.master = nil, "ra2", "C"
	w.want(w.round(), Up, Restart)
	w.want(w.round())
}

// TestOldNews: nodes that have not heard of a takeover do not undo it.
func TestOldNews(t *testing.T) {
	w := newWorld(t)
	a, c := w.nodes["a:1"], w.nodes["c:1"]
	before := [2]fake{*a, *c}
	c.master, c.slots, c.epoch, a.slots, a.master, a.epoch = "", a.slots, 7, "", "C", 7
	after := [2]fake{*a, *c}
	w.want(w.round(), Failover)
	*a, *c = before[0], before[1]
	c.err = errors.New("timeout")
	w.want(w.round())
	*a, *c = after[0], after[1]
	for _, e := range w.round() {
		if e.Kind == Failover {
			t.Errorf("entry %+v", e)
		}
	}
	*a, *c = before[0], before[1] // they have agreed on it
	a.epoch, c.epoch = 8, 8
	w.want(w.round(), Failover)
}

// TestUnseenTakeover: what happened while nobody answered lies anywhere in that
// time.
func TestUnseenTakeover(t *testing.T) {
	w := newWorld(t)
	seen := w.now
	for _, n := range w.nodes {
		n.err = errors.New("timeout")
	}
	w.round()
	w.round()
	a, c := w.nodes["a:1"], w.nodes["c:1"]
	c.master, c.slots, c.epoch, a.slots, a.master = "", a.slots, 7, "", "C"
	for _, n := range w.nodes {
		n.err = nil
	}
	for _, e := range w.round() {
		if e.Kind == Failover && e.Since.Equal(seen) {
			return
		}
	}
	t.Errorf("no failover since %v in %+v", seen, w.state)
}

func TestTimeoutsBecomeDownLate(t *testing.T) {
	w := newWorld(t)
	b := w.nodes["b:1"]
	b.err = errors.New("timeout")
	w.want(w.round())
	b.err = nil
	w.want(w.round(), Up) // two seconds of silence are told
	b.err = errors.New("timeout")
	w.want(w.round())
	w.want(w.round())
	if e := w.want(w.round(), Down); e.Numbers[Refused] != 0 {
		t.Errorf("down %+v", e)
	}
	w.want(w.round())
	b.err = nil
	if e := w.want(w.round(), Up); e.Numbers[SameProcess] != 1 || e.Numbers[SilentMS] != 5000 {
		t.Errorf("up %+v", e)
	}
}

// TestBlindRound: what the watcher missed by its own fault is no node's.
func TestBlindRound(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.Add(time.Minute)
	r := &round{ended: w.now, blind: true, looks: make(map[string]*look), mode: Clustered}
	for addr, n := range w.nodes {
		r.looks[addr] = w.look(addr, n)
	}
	r.looks["b:1"] = &look{at: w.now, err: errors.New("timeout")}
	e := w.want(w.state.compare(r), Watching)
	if gap := e.At.Sub(e.Since); gap != time.Minute {
		t.Errorf("a gap of %v, want a minute", gap)
	}
	w.want(w.round())
}

func TestSlotsMove(t *testing.T) {
	w := newWorld(t)
	w.nodes["a:1"].slots, w.nodes["b:1"].slots, w.nodes["b:1"].epoch = "0-8000", "8001-16383", 9
	if e := w.want(w.round(), Resharding); e.Node != "b:1" || e.Peer != "a:1" || e.Shard != "8001-16383" {
		t.Errorf("resharding %+v", e)
	}
}

func TestTwoMasters(t *testing.T) {
	w := newWorld(t)
	c := w.nodes["c:1"]
	c.master, c.slots, c.epoch = "", "0-8191", 7
	got := w.round()
	if len(got) == 0 {
		t.Fatal("nothing was seen")
	}
	found := false
	for _, e := range got {
		found = found || e.Kind == Split && e.Node == "a:1" && e.Peer == "c:1"
	}
	if !found {
		t.Errorf("entries %+v, want that both serve the slots", got)
	}
	w.nodes["a:1"].slots, w.nodes["a:1"].master = "", "C"
	w.want(w.round(), Agreed)
}

func TestDoubt(t *testing.T) {
	w := newWorld(t)
	w.round()
	w.round()
	w.nodes["a:1"].doubts = "b:1"
	w.want(w.round())
	w.want(w.round())
	if e := w.want(w.round(), Split); e.Node != "b:1" || e.Peer != "a:1" {
		t.Errorf("split %+v", e)
	}
	w.nodes["a:1"].doubts = ""
	w.want(w.round(), Agreed)
}

func TestEvictionsAreGathered(t *testing.T) {
	w := newWorld(t)
	told := int64(0)
	entries := 0
	for range 30 {
		w.nodes["a:1"].evicted += 5
		for _, e := range w.round() {
			if e.Kind != Eviction || !e.Since.Before(e.At) {
				t.Errorf("entry %+v", e)
			}
			told += e.Numbers[Evicted]
			entries++
		}
	}
	if entries != 3 || told < 100 {
		t.Errorf("%d entries tell of %d keys, want 3 of most of 150", entries, told)
	}
}

func TestNodesComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.nodes["d:1"] = &fake{id: "D", runID: "rd", master: "B"}
	w.want(w.round())
	if n := len(w.state.Shards[1].Replicas); n != 1 {
		t.Errorf("%d replicas, want the new one", n)
	}
	delete(w.nodes, "d:1")
	w.want(w.round())
	if n := len(w.state.Nodes); n != 3 {
		t.Errorf("%d nodes, want 3", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("id a:1@2,host myself,master - 0 0 1 connected 0-5 7 [9->-x]", "a:b\r\ndb0:keys=1\r\n")
	f.Add("id :0@0 slave,fail? x 0 0 -1 connected 5-1 99999", "# x\nredis_mode:cluster")
	f.Fuzz(func(t *testing.T, nodes, info string) {
		l := &look{at: time.Now(), view: parseNodes(nodes), info: parseInfo(info)}
		c := newCluster("x")
		for range 3 {
			for _, e := range c.compare(&round{ended: time.Now(), mode: Clustered, looks: map[string]*look{"a:1": l}}) {
				if e.Kind == "" {
					t.Errorf("entry %+v", e)
				}
			}
		}
		for _, s := range c.Shards {
			if s.Slots < 1 || s.Slots > slotCount {
				t.Errorf("shard %+v", s)
			}
		}
	})
}
