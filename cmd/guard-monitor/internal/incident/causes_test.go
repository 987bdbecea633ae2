package incident_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
)

// TestCauses breaks real servers and has what guard.Do publishes explained.
func TestCauses(t *testing.T) {
	t.Parallel()
	play(t, newStage(t, "causes"), []cause{
		{"bypass", bypass}, {"eviction", eviction}, {"restart", restarted}, {"refused", refusedOperations},
		{"overrun", overrun}, {"failover", failedOver}, {"partition", partition},
	})
}

// play runs cases that break the same servers, one after the other.
func play(t *testing.T, s *stage, cases []cause) {
	t.Helper()
	for _, c := range cases {
		ok := t.Run(c.name, func(t *testing.T) {
			outer := s.t
			s.t, s.service = t, c.name
			defer func() { s.t = outer }()
			key := "order:" + strings.ReplaceAll(c.name, " ", "-")
			c.test(t, s, key)
			s.onlyOne(key)
		})
		if !ok {
			return
		}
		s.Stack(t, "heal")
	}
}

// cause is a case of play.
type cause struct {
	name string
	test func(t *testing.T, s *stage, key string)
}

func failedOver(_ *testing.T, s *stage, key string) {
	sh := s.shard(key)
	s.detach(sh)
	s.standing(key, func() {
		s.looked()
		s.Stack(s.t, "kill", s.Node(s.t, sh.Master))
		s.Stack(s.t, "resume", s.Node(s.t, sh.Replicas[0]))
		s.promoted(sh)
	})
	i := s.explained(key, incident.Failover, sh.Replicas[0]+" took over", "config epoch", "refuses connections", "before the event")
	if want := s.sure(key); i.Confidence != want || !isOf(sh, i) {
		s.t.Errorf("confidence %s, shard %s, want %s, %s", i.Confidence, i.Shard, want, sh.Name)
	}
	lost := int64(0)
	for _, e := range i.Evidence {
		if e.Entry != nil {
			lost = max(lost, e.Entry.Numbers[watch.LostBytes])
		}
	}
	if lost <= 0 {
		s.t.Errorf("no lower bound of lost replication in %+v", i.Evidence)
	}
}

func partition(_ *testing.T, s *stage, key string) {
	sh := s.shard(key)
	s.detach(sh)
	s.standing(key, func() {
		s.Stack(s.t, "pause", s.Node(s.t, sh.Master))
		s.Stack(s.t, "resume", s.Node(s.t, sh.Replicas[0]))
		s.promoted(sh)
	})
	first := s.explained(key, incident.Failover, "does not answer", "died or was cut off")
	s.Stack(s.t, "resume", s.Node(s.t, sh.Master))
	i := s.explained(key, incident.Partition, "its process lived all the time", "took over")
	if want := s.sure(key); i.Confidence != want {
		s.t.Errorf("confidence %s, want %s", i.Confidence, want)
	}
	if first.ID != i.ID {
		s.t.Errorf("the incident changed its identity from %s to %s", first.ID, i.ID)
	}
}

func restarted(_ *testing.T, s *stage, key string) {
	sh := s.shard(key)
	s.must(sh.Replicas[0], "CONFIG", "SET", "cluster-replica-no-failover", "yes")
	defer s.must(sh.Replicas[0], "CONFIG", "SET", "cluster-replica-no-failover", "no")
	s.standing(key, func() {
		s.looked()
		s.Stack(s.t, "kill", s.Node(s.t, sh.Master))
		s.Stack(s.t, "start", s.Node(s.t, sh.Master))
	})
	i := s.explained(key, incident.Restart, sh.Master+" was restarted", "with 0 keys")
	if want := s.sure(key); i.Confidence != want {
		s.t.Errorf("confidence %s, want %s", i.Confidence, want)
	}
}

// refusedOperations: a dead Redis under the default policy is an incident, too.
func refusedOperations(t *testing.T, s *stage, key string) {
	sh := s.shard(key)
	s.must(sh.Replicas[0], "CONFIG", "SET", "cluster-replica-no-failover", "yes")
	defer s.must(sh.Replicas[0], "CONFIG", "SET", "cluster-replica-no-failover", "no")
	in := s.instance("a", lockTTL)
	s.looked()
	s.Stack(t, "kill", s.Node(t, sh.Master))
	refused := time.Now()
	if err := in.guard.Apply(t.Context(), key, guard.Insert(&order{No: key})); !errors.Is(err, guard.ErrUnavailable) {
		t.Errorf("Do: %v, want ErrUnavailable", err)
	}
	i := s.explained(key, incident.Restart, "refused operations", "refuses connections")
	t.Logf("the incident was there %v after the operation began", time.Since(refused).Round(time.Millisecond))
	if want := (incident.Effect{Refused: 1}); fmt.Sprint(i.Effect) != fmt.Sprint(want) {
		t.Errorf("effect %+v, want %+v", i.Effect, want)
	}
	s.Stack(t, "start", s.Node(t, sh.Master))
}

func eviction(_ *testing.T, s *stage, key string) {
	sh := s.shard(key)
	s.must(sh.Master, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	defer func() {
		s.must(sh.Master, "CONFIG", "SET", "maxmemory", "0")
		s.must(sh.Master, "CONFIG", "SET", "maxmemory-policy", "noeviction")
		s.must(sh.Master, "FLUSHALL")
	}()
	s.standing(key, func() {
		s.must(sh.Master, "CONFIG", "SET", "maxmemory", "6mb")
		value := strings.Repeat("v", 1<<16)
		for n := 0; ; n++ {
			if left, err := s.on(sh.Master, "EXISTS", key).Int(); err == nil && left == 0 {
				return
			}
			_ = s.on(sh.Master, "SET", fmt.Sprintf("fill:%d", n), value).Err() // most are another shard's
			if n > 5000 {
				s.t.Fatal("the lock is not evicted")
			}
		}
	})
	s.explained(key, incident.Eviction, sh.Master+" evicted", "allkeys-lru")
}

func bypass(_ *testing.T, s *stage, key string) {
	s.shard(key)
	const ttl = 3 * time.Second
	in := s.instance("a", ttl)
	testwait.Until(s.t, "an earlier holder's whole lock would have been watched", func() bool {
		c := s.watcher.Clusters()[0]
		return c.SeenAt.Sub(c.Since) > ttl+time.Second
	})
	err := in.guard.Do(context.Background(), key, func(ctx context.Context, tx *gorm.DB) error {
		if err := s.db.Exec("INSERT INTO orders (no, instance) VALUES (?, 'console')", key).Error; err != nil {
			return err
		}
		return guard.Insert(&order{No: key}).Run(ctx, tx)
	})
	if !errors.Is(err, guard.ErrIntercepted) {
		s.t.Errorf("Do: %v, want an interception", err)
	}
	s.explained(key, incident.Bypass, "somebody wrote without a valid lock", "answered guard-monitor")
}

func overrun(_ *testing.T, s *stage, key string) {
	s.shard(key)
	h := startHolder(s.t, holderConfig{DSN: s.dsn, Key: key, No: key, Redis: s.Addrs, TTL: 6 * time.Second})
	h.Await("that it stands", func(line string) bool { return line == "stands" })
	h.Signal(syscall.SIGSTOP)
	b := s.instance("b", lockTTL)
	err := b.guard.Apply(context.Background(), key, guard.Insert(&order{No: key}), guard.Wait(time.Minute))
	if err != nil {
		s.t.Fatal(err)
	}
	h.Signal(syscall.SIGCONT)
	h.Proceed()
	event := h.Await("its event", func(line string) bool { return line != "stands" })
	if err := s.receive(s.t.Context(), []byte(event)); err != nil {
		s.t.Fatal(err)
	}
	if i := s.explained(key, incident.Overrun, "did not renew it until", "answered guard-monitor"); i.Confidence != incident.High {
		s.t.Errorf("confidence %s, want high", i.Confidence)
	}
}
