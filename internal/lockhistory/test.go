package lockhistory

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
)

const (
	ttl  = 2 * time.Second // of locks that are to expire
	keys = 4
)

// A Setup is an engine whose histories are judged.
type Setup struct {
	Where string              // see Job
	Key   func(string) string // returns a key of the test's own
	// Engine is one of this process on the same store.
	Engine lock.Engine
	// Break breaks the store, which keeps the locks that it granted, and returns when it
	// works again. Nil = not here.
	Break func(t *testing.T)
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
	if s.Break != nil {
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
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// storeFails: what was granted before is kept, or has run out. All go on afterwards.
func (s Setup) storeFails(t *testing.T) {
	children := s.start(t, "store", 2*ttl)
	spans := Observe(t, children, 50)
	s.Break(t)
	broken := Now()
	for _, c := range children { // what it printed before may not have been read yet
		for again := false; !again; {
			s := c.Next(t)
			spans = append(spans, s)
			again = s.Got > broken && s.End == Released
		}
	}
	spans = append(spans, finish(children)...)
	judge(t, spans)
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

// judge reports what is wrong with a history in which a lock is lost only by its deadline.
func judge(t *testing.T, spans []Span) {
	t.Helper()
	for _, wrong := range Judge(spans, Fault{}) {
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
