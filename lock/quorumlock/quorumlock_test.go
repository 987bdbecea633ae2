package quorumlock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/quorumlock"
)

func TestBadInput(t *testing.T) {
	three := memlocks(3)
	_, starters := newNodes()
	for name, c := range map[string]struct {
		nodes []lockengine.Engine
		cfg   quorumlock.Config
		want  string
	}{
		"none":      {nil, quorumlock.Config{Durable: true}, "0 nodes"},
		"one":       {memlocks(1), quorumlock.Config{Durable: true}, "1 nodes"},
		"even":      {memlocks(4), quorumlock.Config{Durable: true}, "4 nodes"},
		"nil":       {[]lockengine.Engine{memlock.New(), nil, memlock.New()}, quorumlock.Config{Durable: true}, "node 2: it is nil"},
		"nil node":  {[]lockengine.Engine{memlock.New(), (*node)(nil), memlock.New()}, quorumlock.Config{Durable: true}, "node 2: it is nil"},
		"twice":     {[]lockengine.Engine{three[0], three[1], three[0]}, quorumlock.Config{Durable: true}, "node 3: it is the same engine as node 1"},
		"forgetful": {three, quorumlock.Config{}, "set Config.Durable"},
		"name":      {three, quorumlock.Config{Durable: true, Name: "\xff"}, "not UTF-8"},
		"timeout":   {three, quorumlock.Config{Durable: true, NodeTimeout: -1}, "NodeTimeout"},
		"starters":  {starters, quorumlock.Config{}, ""},
		"durable":   {three, quorumlock.Config{Durable: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			switch _, err := quorumlock.New(c.nodes, c.cfg); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestNodeTimeoutOfShortLocks(t *testing.T) {
	e, err := quorumlock.New(memlocks(3), quorumlock.Config{Durable: true, NodeTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Acquire(t.Context(), mine, 9*time.Second)
	wantIs(t, err, lockengine.ErrDenied)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, 9*time.Second)[0], lockengine.ErrDenied)
	if _, err := e.Acquire(t.Context(), mine, 10*time.Second); err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	e := over(t, memlocks(3)...)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrDenied)
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrDenied)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrDenied)
	wantIs(t, e.Ping(t.Context()), lockengine.ErrDenied)
}

// TestGrantsBehindADecision: what nodes have granted when three others decide is released, though all
// requests have been answered by then.
func TestGrantsBehindADecision(t *testing.T) {
	nodes, engines := newNodes()
	for _, n := range nodes[:3] {
		n.give(theirs.Owner)
	}
	for range 2000 { // the answers have to arrive in this order
		e := over(t, engines...)
		if _, err := e.Acquire(t.Context(), mine, ttl); err == nil {
			t.Fatal("two owners have the lock")
		}
		if err := e.Close(t.Context()); err != nil { // it waits for the last releases
			t.Fatal(err)
		}
		if all := owners(nodes); slices.Contains(all, mine.Owner) {
			t.Fatalf("what was granted is left: %q", all)
		}
	}
}

// TestAcquireWithoutMajority checks the error of such an acquire. Nodes that hold "they:1" name it.
func TestAcquireWithoutMajority(t *testing.T) {
	notSent := fmt.Errorf("%w: refused", lockengine.ErrNotSent)
	noAnswer := fmt.Errorf("%w: gone", lockengine.ErrNoAnswer)
	denied := fmt.Errorf("%w: password", lockengine.ErrDenied)
	refused := fmt.Errorf("%w: OOM", lockengine.ErrRefused)
	unusable := fmt.Errorf("%w: WRONGTYPE", lockengine.ErrUnusable)
	heldBy := errors.New("held")
	all := []error{lockengine.ErrNotSent, lockengine.ErrNoAnswer, lockengine.ErrDenied, lockengine.ErrRefused, lockengine.ErrUnusable, heldBy}
	for name, c := range map[string]struct {
		errs []error // of nodes, from the first on; the others grant
		want []error // of all
	}{
		"unreachable":                 {[]error{notSent, notSent, notSent}, []error{lockengine.ErrNotSent}},
		"denied":                      {[]error{denied, denied, denied}, []error{lockengine.ErrDenied, lockengine.ErrNotSent}},
		"some denied":                 {[]error{denied, notSent, denied}, []error{lockengine.ErrNotSent}},
		"refused":                     {[]error{refused, refused, refused}, []error{lockengine.ErrRefused}},
		"unusable":                    {[]error{unusable, unusable, unusable}, []error{lockengine.ErrUnusable}},
		"silent":                      {[]error{noAnswer, noAnswer, noAnswer}, []error{lockengine.ErrNoAnswer}},
		"one silent, two unreachable": {[]error{noAnswer, notSent, notSent}, []error{lockengine.ErrNoAnswer}},
		"held":                        {[]error{heldBy, heldBy, heldBy}, []error{heldBy}},
		"held beside a silent one":    {[]error{heldBy, heldBy, heldBy, noAnswer, notSent}, []error{heldBy}},
		"held beside silent ones":     {[]error{noAnswer, noAnswer, heldBy, heldBy}, []error{heldBy}},
		"held by one, others silent":  {[]error{noAnswer, noAnswer, noAnswer, heldBy}, []error{lockengine.ErrNoAnswer}},
		"held by one, others gone":    {[]error{heldBy, notSent, notSent, notSent, notSent}, []error{lockengine.ErrNotSent}},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, engines := newNodes()
			e := over(t, engines...)
			for i, err := range c.errs {
				if errors.Is(err, heldBy) {
					nodes[i].give(theirs.Owner)
				} else {
					nodes[i].fails(err)
				}
			}
			_, err := e.Acquire(t.Context(), mine, ttl)
			var got []error
			for _, kind := range all {
				if _, held := errors.AsType[*lockengine.HeldError](err); errors.Is(err, kind) || held && errors.Is(kind, heldBy) {
					got = append(got, kind)
				}
			}
			slices.SortFunc(got, byText)
			slices.SortFunc(c.want, byText)
			if !slices.Equal(got, c.want) {
				t.Errorf("error is %v, which matches %v, want %v", err, got, c.want)
			}
			if err := e.Close(t.Context()); err != nil { // it waits for the last releases
				t.Fatal(err)
			}
			if slices.Contains(owners(nodes), mine.Owner) {
				t.Errorf("what was granted is left: %q", owners(nodes))
			}
		})
	}
}

func byText(a, b error) int { return strings.Compare(a.Error(), b.Error()) }

// The lock may be held if a majority may have granted it: two whose grant could not be
// undone, and one that did not answer. That others name another owner proves nothing then.
func TestSilentMajorityMayHold(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	nodes[0].give(theirs.Owner)
	nodes[1].give(theirs.Owner)
	for _, n := range nodes[2:] {
		n.release = func(func() error) error { return lockengine.ErrNotSent }
	}
	nodes[4].onAcquire(func(next func() (lockengine.Grant, error)) (lockengine.Grant, error) {
		_, err := next()
		return lockengine.Grant{}, errors.Join(lockengine.ErrNoAnswer, err)
	})
	_, err := e.Acquire(t.Context(), mine, ttl)
	if _, held := errors.AsType[*lockengine.HeldError](err); held || !errors.Is(err, lockengine.ErrNoAnswer) {
		t.Errorf("error is %v, and the owners are %q", err, owners(nodes))
	}
}

// A release at a node waits for the acquire of the same owner there.
func TestReleaseDoesNotOvertakeAcquire(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	overtaken := make(chan struct{})
	nodes[4].onAcquire(func(next func() (lockengine.Grant, error)) (lockengine.Grant, error) {
		select { // it is slow: there is time for a release
		case <-overtaken:
			t.Error("the release is sent before the acquire has ended")
		case <-time.After(300 * time.Millisecond):
		}
		return next()
	})
	nodes[4].release = func(next func() error) error {
		defer close(overtaken)
		return next()
	}
	acquire(t, e, mine)
	release(t, e, mine)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(owners(nodes), mine.Owner) {
		t.Errorf("the owners are %q, after the release", owners(nodes))
	}
}

// slowToGrant returns an engine whose Acquire was refused, since three nodes are held by another
// owner, while the other two have not answered. They grant the lock when goOn is closed.
func slowToGrant(t *testing.T) (e lockengine.Engine, nodes []*node, goOn chan struct{}) {
	t.Helper()
	nodes, engines := newNodes()
	e, goOn = over(t, engines...), make(chan struct{})
	for _, n := range nodes[:3] {
		n.give(theirs.Owner)
	}
	nodes[3].hangs(goOn)
	nodes[4].hangs(goOn)
	_, err := e.Acquire(t.Context(), mine, ttl)
	wantHeld(t, err, theirs.Owner)
	return e, nodes, goOn
}

// A lock that a node grants after the acquire was refused is released there.
func TestLateGrantIsReleased(t *testing.T) {
	e, nodes, goOn := slowToGrant(t)
	close(goOn)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(owners(nodes), mine.Owner) {
		t.Errorf("the owners are %q", owners(nodes))
	}
}

// What a node grants late is not released if its owner has asked again since, and has the lock now.
func TestLateGrantOfAnOwnerWhoAskedAgain(t *testing.T) {
	e, nodes, goOn := slowToGrant(t)
	nodes[0].take(theirs.Owner)
	again := make(chan error)
	go func() {
		_, err := e.Acquire(t.Context(), mine, ttl)
		again <- err
	}()
	testwait.Until(t, "it asks again", func() bool { return nodes[0].owner() == mine.Owner })
	close(goOn)
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil { // and what is in the background has ended
		t.Fatal(err)
	}
	want := []string{mine.Owner, theirs.Owner, theirs.Owner, mine.Owner, mine.Owner}
	if !slices.Equal(owners(nodes), want) {
		t.Errorf("the owners are %q, want %q", owners(nodes), want)
	}
}

// When votes are split, the owner that has the first node gets the others when they are
// released.
func TestFirstNodeSettlesSplitVotes(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	for i, other := range []string{2: "b:1", 3: "b:1", 4: "c:1"} {
		if other == "" {
			continue
		}
		n := nodes[i]
		n.give(other)
		n.onAcquire(func(next func() (lockengine.Grant, error)) (lockengine.Grant, error) {
			grant, err := next()
			if n.owner() == other {
				n.take(other)
			}
			return grant, err
		})
	}
	acquire(t, e, mine)
	if want := slices.Repeat([]string{mine.Owner}, 5); !slices.Equal(owners(nodes), want) {
		testwait.Until(t, "all nodes have it", func() bool { return slices.Equal(owners(nodes), want) })
	}
}

// An owner that does not have the first node gives way.
func TestOthersGiveWay(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	others := []string{"a:1", "", "c:1", "a:1", "c:1"}
	for i, other := range others {
		if other != "" {
			nodes[i].give(other)
		}
	}
	_, err := e.Acquire(t.Context(), mine, ttl)
	if _, held := errors.AsType[*lockengine.HeldError](err); !held {
		t.Errorf("error is %v, want a *HeldError", err)
	}
	if !slices.Equal(owners(nodes), others) {
		t.Errorf("the owners are %q, want %q", owners(nodes), others)
	}
	if h, err := e.Inspect(t.Context(), mine.Key); err != nil || h.Owner != "" {
		t.Errorf("Inspect: %+v, %v: nobody has a majority", h, err)
	}
}

// A minority that forgot a lock gets it again with the next renewal; a majority has lost it.
func TestRenewHeals(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	acquire(t, e, mine)
	testwait.Until(t, "all nodes have it", func() bool { return !slices.Contains(owners(nodes), "") })
	nodes[0].take(mine.Owner)
	nodes[3].take(mine.Owner)
	if err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	testwait.Until(t, "all nodes have it again", func() bool { return !slices.Contains(owners(nodes), "") })
	for _, n := range nodes[:3] {
		n.take(mine.Owner)
	}
	wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrNotHeld)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "", "", mine.Owner, mine.Owner}; !slices.Equal(owners(nodes), want) {
		t.Errorf("the owners are %q, want %q", owners(nodes), want)
	}
}

// A renewal that is on its way does not bring back what is released meanwhile.
func TestRenewDoesNotReviveReleased(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	acquire(t, e, mine)
	testwait.Until(t, "all nodes have it", func() bool { return !slices.Contains(owners(nodes), "") })
	nodes[4].take(mine.Owner)
	goOn := make(chan struct{})
	nodes[4].renew = func(next func() []error) []error {
		errs := next()
		<-goOn
		return errs
	}
	if err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	release(t, e, mine)
	close(goOn)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := slices.Repeat([]string{""}, 5); !slices.Equal(owners(nodes), want) {
		t.Errorf("the owners are %q", owners(nodes))
	}
}

// A node whose server was started less than a ttl ago does not vote, and has the lock
// nevertheless if the others are a majority.
func TestYoungNodesDoNotVote(t *testing.T) {
	nodes, engines := newNodes()
	for i, n := range nodes {
		n.started = time.Now().Add(-ttl - time.Minute)
		if i < 2 {
			n.started = time.Now().Add(-ttl / 2)
		}
	}
	e, err := quorumlock.New(engines, quorumlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	acquire(t, e, mine)
	testwait.Until(t, "all nodes have it", func() bool { return !slices.Contains(owners(nodes), "") })
	release(t, e, mine)
	testwait.Until(t, "no node has it", func() bool { return !slices.Contains(owners(nodes), mine.Owner) })

	nodes[2].started = time.Time{} // it is not known
	_, err = e.Acquire(t.Context(), mine, ttl)
	wantIs(t, err, lockengine.ErrRefused)
	if slices.Contains(owners(nodes), mine.Owner) {
		t.Errorf("the owners are %q, of a lock that was refused", owners(nodes))
	}
}

// The release of a lock that only some nodes have returns ErrNotHeld, or that there is no answer.
func TestReleaseOfLostLock(t *testing.T) {
	nodes, engines := newNodes()
	e := over(t, engines...)
	nodes[0].give(mine.Owner)
	nodes[1].give(mine.Owner)
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNotHeld)

	testwait.Until(t, "the release has ended at all nodes", func() bool { return !slices.Contains(owners(nodes), mine.Owner) })
	nodes[0].give(mine.Owner)
	nodes[1].give(mine.Owner)
	nodes[4].release = func(func() error) error { return lockengine.ErrNotSent }
	wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNoAnswer)
}

// A lock that a bare majority has granted is lost when two of these nodes forget it. A renewal before
// that fills the other nodes, and the lock is kept.
func TestBareMajority(t *testing.T) {
	for name, want := range map[string]error{"renewed": nil, "not renewed": lockengine.ErrNotHeld} {
		t.Run(name, func(t *testing.T) {
			nodes, engines := newNodes()
			e := over(t, engines...)
			for _, n := range nodes[3:] {
				n.give(theirs.Owner)
			}
			acquire(t, e, mine)
			for _, n := range nodes[3:] {
				n.take(theirs.Owner)
			}
			if want == nil {
				wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], nil)
				testwait.Until(t, "all nodes have the lock", func() bool {
					return !slices.ContainsFunc(nodes, func(n *node) bool { return n.owner() != mine.Owner })
				})
			}
			for _, n := range nodes[:2] {
				n.take(mine.Owner)
			}
			wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], want)
		})
	}
}
