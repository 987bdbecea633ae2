package watch

import (
	"errors"
	"testing"
	"time"
)

// pair is a master with a replica outside a Redis Cluster.
type pair struct {
	t     *testing.T
	now   time.Time
	state *cluster
	roles map[string]string // by address; empty = no answer
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, now: time.Now(), state: newCluster("main"), roles: map[string]string{"a:1": "master", "b:1": "slave"}}
	p.round("a:1", Watching)
	return p
}

// round looks at both a second later, when the Sentinels name a master, and
// expects entries of these kinds.
func (p *pair) round(named string, kinds ...Kind) []Entry {
	p.t.Helper()
	p.now = p.now.Add(time.Second)
	r := &round{ended: p.now, looks: make(map[string]*look), mode: Sentinel, master: named}
	for addr, role := range p.roles {
		r.looks[addr] = &look{at: p.now, info: map[string]string{"run_id": addr, "role": role}}
		if role == "" {
			r.looks[addr] = &look{at: p.now, err: errors.New("timeout")}
		}
	}
	got := p.state.compare(r)
	(&world{t: p.t}).want(got, kinds...)
	return got
}

// TestNewLeader: a master that does not answer acts as nothing, and what becomes
// of it lies after its last answer.
func TestNewLeader(t *testing.T) {
	p := newPair(t)
	answered := p.now
	p.roles["a:1"] = ""
	p.roles["b:1"] = "master"
	p.round("a:1")
	p.round("a:1")
	p.round("a:1", Down)
	if e := p.round("b:1", Failover)[0]; !e.Since.Equal(answered) {
		t.Errorf("the failover was since %v, want since the old master answered, at %v", e.Since, answered)
	}
	p.roles["a:1"] = "master"
	p.round("b:1", Up, Split)
}
