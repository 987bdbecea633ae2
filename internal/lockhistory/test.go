package lockhistory

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
)

const (
	ttl  = 2 * time.Second // of locks that are to expire
	keys = 4
)

// StoreTTL is the ttl of locks in a store that fails.
const StoreTTL = 2 * ttl

// A Setup is an engine whose histories are judged.
type Setup struct {
	Where string              // see Job
	Key   func(string) string // returns a key of the test's own
	// Engine is one of this process on the same store.
	Engine lockengine.Engine
	// Breaks break the store, one after the other. Each returns when the store works again.
	Breaks []Break
}

// A Break is one way in which a store fails.
type Break struct {
	Name string
	Do   func(t *testing.T)
	// Forgets is the node of the locks that the store may forget meanwhile. Empty means that it
	// keeps all locks that it has granted.
	Forgets string
}

// Outage is a Break that lasts for longer than the locks that were granted before.
func Outage(name string, begin func(t *testing.T) (end func())) Break {
	return Break{Name: name, Do: func(t *testing.T) {
		t.Helper()
		defer begin(t)()
		<-time.After(StoreTTL + time.Second)
	}}
}

// CutOff is an Outage of some links to the store: requests are executed, and their answers lost.
func CutOff(name string, links ...*locktest.Link) Break {
	return Outage(name, func(*testing.T) func() {
		var heals []func()
		for _, k := range links {
			heals = append(heals, k.Fault(locktest.SwallowAnswers))
		}
		return func() {
			for _, heal := range heals {
				heal()
			}
		}
	})
}

// Test judges the histories of several processes that want the same locks: without a
// fault, when one is killed, when one stands still until its locks have expired, and when
// the store fails.
func Test(t *testing.T, s Setup) {
	t.Helper()
	t.Run("NoFault", func(t *testing.T) { s.noFault(t) })
	t.Run("ProcessKilled", func(t *testing.T) { s.processKilled(t) })
	t.Run("ProcessPaused", func(t *testing.T) { s.processPaused(t) })
	t.Run("HolderPaused", func(t *testing.T) { s.holderPaused(t) })
	if s.Breaks != nil {
		t.Run("StoreFails", func(t *testing.T) { s.storeFails(t) })
	}
}

func (s Setup) start(t *testing.T, name string, ttl time.Duration) []*Child {
	t.Helper()
	names := make([]string, keys)
	for i := range names {
		names[i] = s.Key(fmt.Sprint("history-", name, i))
	}
	return StartAll(t, Job{Where: s.Where, Keys: names, Workers: 16, Hold: 2 * time.Millisecond, TTL: ttl})
}

// noFault: to all processes together each lock is a mutex.
func (s Setup) noFault(t *testing.T) {
	children := s.start(t, "none", 10*ttl)
	spans := Observe(t, children, 200)
	spans = append(spans, finish(children)...)
	for _, s := range spans {
		if s.End != Released {
			t.Errorf("without a fault: %+v", s)
		}
	}
	judge(t, spans)
}

// processKilled: the locks of a process that died are free after their ttl, and not before.
func (s Setup) processKilled(t *testing.T) {
	children := s.start(t, "killed", ttl)
	spans := Observe(t, children, 50)
	children[0].Signal(t, syscall.SIGKILL)
	killed := Now()
	for again := make(map[string]bool); len(again) < keys; {
		for _, s := range Observe(t, children[1:], 10) {
			spans = append(spans, s)
			if s.Got > killed {
				again[s.Key] = true
			}
		}
	}
	spans = append(spans, finish(children)...)
	judge(t, spans)
}

// processPaused: a process stands still until others have its locks. It believes in none of
// them when it goes on.
func (s Setup) processPaused(t *testing.T) {
	children := s.start(t, "paused", ttl)
	spans := Observe(t, children, 50)
	children[0].Signal(t, syscall.SIGSTOP)
	paused := Now()
	for time.Duration(Now()-paused) < ttl+ttl/2 {
		spans = append(spans, Observe(t, children[1:], 20)...)
	}
	children[0].Signal(t, syscall.SIGCONT)
	spans = append(spans, Observe(t, children, 50)...)
	spans = append(spans, finish(children)...)
	judge(t, spans)
}

// holderPaused: a holder stands still until its lock has expired and another has it. It
// does not believe in it for a moment when it goes on.
func (s Setup) holderPaused(t *testing.T) {
	key := s.Key("history-holder")
	l, err := lock.New(s.Engine, lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	holder := Start(t, Job{Where: s.Where, Keys: []string{key}, Workers: 1, TTL: ttl})
	if s := holder.Next(t); s.Key != begun {
		t.Fatalf("the child says %+v", s)
	}
	holder.Signal(t, syscall.SIGSTOP)
	next, err := l.Acquire(t.Context(), key)
	got := Now()
	holder.Signal(t, syscall.SIGCONT)
	if err != nil {
		t.Fatal(err)
	}
	if s := holder.Next(t); s.End != Lost || s.Believed >= s.Deadline || s.Believed >= got {
		t.Errorf("another got the lock at %d, and the paused holder: %+v", got, s)
	}
	if err := next.Err(); err != nil {
		t.Errorf("the other's lease: %v", err)
	}
	holder.Stop() // it waits for the lock, and gives up
	if err := next.Release(t.Context()); err != nil && !errors.Is(err, lockengine.ErrNoAnswer) && !errors.Is(err, lockengine.ErrNotSent) {
		t.Errorf("Release: %v", err)
	}
}

// storeFails: what was granted before is kept, has run out, or was forgotten by a store that may
// forget. All go on after each failure.
func (s Setup) storeFails(t *testing.T) {
	children := s.start(t, "store", StoreTTL)
	spans := Observe(t, children, 50)
	var faults []Fault
	for _, b := range s.Breaks {
		begin := Now()
		b.Do(t)
		broken := Now()
		if b.Forgets != "" {
			faults = append(faults, Fault{Node: b.Forgets, Begin: begin, End: broken})
		}
		spans = append(spans, ObserveAfter(t, children, broken)...)
		t.Logf("%s: all go on after %v", b.Name, time.Duration(Now()-broken).Round(time.Millisecond))
	}
	spans = append(spans, finish(children)...)
	judge(t, spans, faults...)
}

func finish(children []*Child) (spans []Span) {
	for _, c := range children {
		c.Stop()
	}
	for _, c := range children {
		spans = append(spans, c.Finish()...)
	}
	return spans
}

// judge reports what is wrong with a history in which a lock is lost only by its deadline, or by
// a fault. No two holders believe in one lock even then.
func judge(t *testing.T, spans []Span, faults ...Fault) {
	t.Helper()
	for _, wrong := range Judge(spans, faults...) {
		t.Error(wrong)
	}
	overlaps := Overlaps(spans)
	if overlaps > 0 { // also of holds that were lost in the end
		t.Errorf("%d times two holders believed in one lock", overlaps)
	}
	var lost, refused int
	for _, s := range spans {
		if s.End == Lost {
			lost++
		}
		if s.Err != "" {
			refused++
		}
	}
	t.Logf("%d holds, %d lost, %d overlaps, %d acquires failed", len(spans)-refused, lost, overlaps, refused)
}
