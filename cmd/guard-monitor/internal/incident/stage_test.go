package incident_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// stage is a cluster that may be broken, a database, and a monitor's insides.
type stage struct {
	*teststack.Cluster
	t       *testing.T
	dsn     string
	db      *gorm.DB
	store   *store.Store
	watcher *watch.Watcher
	service string // that reports, so that each case has incidents of its own
}

// lockTTL leaves a busy machine 40 s until a renewal tells a holder of its loss.
const lockTTL = 2 * time.Minute

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	s := &stage{Cluster: teststack.StartCluster(t, name), t: t, dsn: teststack.MySQL(t), store: newStore(t)}
	s.db = testdb.OpenMySQL(t, s.dsn)
	if err := s.db.AutoMigrate(&order{}); err != nil {
		t.Fatal(err)
	}
	s.watcher = watch.New(watch.Config{
		Targets: []watch.Target{{Name: "main", Addrs: s.Addrs}},
		Record:  s.store.AddEntries,
	})
	run(t, s.watcher.Run)
	tracker := incident.NewTracker(incident.Config{
		Store: s.store, Locator: s.watcher, Ready: s.watcher.Ready(), Every: 200 * time.Millisecond,
	})
	run(t, tracker.Run)
	<-s.watcher.Ready()
	return s
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// run runs a part until the test ends.
func run(t *testing.T, part func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a part ended with %v", err)
		}
	})
}

// Publish brings an event to the store, by way of its JSON.
func (s *stage) Publish(ctx context.Context, ev notify.Event) error {
	ev.Service = s.service
	raw, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	return s.receive(ctx, raw)
}

func (s *stage) receive(ctx context.Context, raw []byte) error {
	var ev notify.Event
	if err := ev.UnmarshalJSON(raw); err != nil {
		return err
	}
	_, err := s.store.Add(ctx, ev, raw, "")
	return err
}

func (s *stage) instance(name string, ttl time.Duration) *instance {
	s.t.Helper()
	in, err := newInstance(name, s.db, s.Addrs, ttl, s)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := in.close(); err != nil {
			s.t.Error(err)
		}
	})
	return in
}

func (s *stage) on(addr string, args ...any) *redis.Cmd {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.Do(ctx, args...)
}

func (s *stage) must(addr string, args ...any) {
	s.t.Helper()
	if err := s.on(addr, args...).Err(); err != nil {
		s.t.Fatalf("%v on %s: %v", args, addr, err)
	}
}

// isOf reports whether an incident is of the shard, or of several, if those of other cases have
// failed at about the same time.
func isOf(sh watch.Shard, i incident.Incident) bool { return i.Shard == sh.Name || i.Shard == "" }

// shard waits until the watcher sees key's shard whole.
func (s *stage) shard(key string) (found watch.Shard) {
	s.t.Helper()
	slot, err := s.on(s.Addrs[0], "CLUSTER", "KEYSLOT", key).Int()
	if err != nil {
		s.t.Fatal(err)
	}
	testwait.Until(s.t, "the shard of "+key+" is whole", func() bool {
		c := s.watcher.Clusters()[0]
		for _, n := range c.Nodes {
			if !n.Up || n.Role == "replica" && !n.LinkUp {
				return false
			}
		}
		for _, sh := range c.Shards {
			if watch.InShard(sh.Name, slot) && len(sh.Replicas) == 1 {
				found = sh
				return true
			}
		}
		return false
	})
	return found
}

// detach keeps from a shard's replica what its master takes from now on.
func (s *stage) detach(sh watch.Shard) {
	s.t.Helper()
	s.Stack(s.t, "pause", s.Node(s.t, sh.Replicas[0]))
	s.must(sh.Master, "CLIENT", "KILL", "TYPE", "replica")
}

// looked waits until the watcher has looked at all nodes again.
func (s *stage) looked() {
	s.t.Helper()
	now := time.Now()
	testwait.Until(s.t, "another round", func() bool { return s.watcher.Clusters()[0].SeenAt.After(now.Add(time.Second)) })
}

func (s *stage) promoted(sh watch.Shard) {
	s.t.Helper()
	testwait.Until(s.t, "the replica is promoted", func() bool {
		role, err := s.on(sh.Replicas[0], "ROLE").Slice()
		info, err2 := s.on(sh.Replicas[0], "CLUSTER", "INFO").Text()
		return err == nil && err2 == nil && role[0] == "master" && strings.Contains(info, "cluster_state:ok")
	})
}

// standing has one instance stand between its lock and its insert while fail
// happens, and another insert the same order then.
func (s *stage) standing(key string, fail func()) {
	s.t.Helper()
	a, b := s.instance("a", lockTTL), s.instance("b", lockTTL)
	stands, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- a.guard.Do(context.Background(), key, func(ctx context.Context, tx *gorm.DB) error {
			close(stands)
			<-goOn
			return guard.Insert(&order{No: key}).Run(ctx, tx)
		})
	}()
	<-stands
	release := sync.OnceFunc(func() { close(goOn) })
	defer release() // also when fail gives up
	fail()
	err := b.guard.Apply(context.Background(), key, guard.Insert(&order{No: key}), guard.Wait(20*time.Second))
	if err != nil {
		s.t.Errorf("the other instance: %v", err)
	}
	release()
	if err := <-done; !errors.Is(err, guard.ErrIntercepted) {
		s.t.Errorf("Do: %v, want an interception", err)
	}
}

// explained waits for the incident of a key to have the cause, and checks what
// its evidence says.
func (s *stage) explained(key string, cause incident.Cause, rows ...string) incident.Incident {
	s.t.Helper()
	var last incident.Incident
	defer func() {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: cause %s (%s), state %s, %d event, shard %s\n", key, last.Cause, last.Confidence, last.State, last.Events, last.Shard)
		for _, e := range last.Evidence {
			fmt.Fprintf(&b, "  %s %s %s\n", e.At.Format("15:04:05.000"), e.Node, said(e))
		}
		fmt.Fprintf(&b, "  see %s", last.DocLink)
		s.t.Log(b.String())
	}()
	testwait.Until(s.t, "the incident of "+key+" is explained by "+string(cause), func() bool {
		events, err := s.store.Events(s.t.Context(), store.EventFilter{Key: key})
		if err != nil || len(events) == 0 || events[0].Incident == "" {
			return false
		}
		last, err = s.store.Incident(s.t.Context(), events[0].Incident)
		return err == nil && last.Cause == cause
	})
	var text strings.Builder
	for _, e := range last.Evidence {
		text.WriteString(e.Node + " " + said(e) + "\n")
	}
	for _, row := range rows {
		if !strings.Contains(text.String(), row) {
			s.t.Errorf("the evidence lacks %q:\n%s", row, text.String())
		}
	}
	return last
}

// sure is how sure a fault of Redis explains a key's event: on a busy machine, who
// has the key may be asked in vain, so that nobody says that the lock was gone.
func (s *stage) sure(key string) incident.Confidence {
	s.t.Helper()
	events, err := s.store.Events(s.t.Context(), store.EventFilter{Key: key})
	if err != nil || len(events) == 0 {
		s.t.Fatalf("%d events of %s, %v", len(events), key, err)
	}
	if ev := events[0].Event; ev.Loss == "" && ev.HolderAtConflict == notify.HolderUnknown {
		return incident.Medium
	}
	return incident.High
}

// onlyOne checks that no other explanation was given for a key on the way.
func (s *stage) onlyOne(key string) {
	s.t.Helper()
	events, err := s.store.Events(s.t.Context(), store.EventFilter{Key: key})
	if err != nil || len(events) != 1 {
		s.t.Errorf("%d events of %s, %v, want 1", len(events), key, err)
	}
}
