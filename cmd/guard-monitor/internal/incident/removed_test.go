package incident_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/internal/testwait"
)

// removal is one way in which a lock goes.
type removal struct {
	name       string
	remove     func(s *stage, node, key string)
	cause      incident.Cause
	confidence incident.Confidence
	row        string
}

// removals are the ways in which somebody takes a lock away from a Redis that is
// well, and what is told of them.
var removals = []removal{
	// The first: when markers of other cases have expired, keys that expire say nothing.
	{"PEXPIRE", func(s *stage, node, key string) {
		s.must(node, "PEXPIRE", key, 1)
		testwait.Until(s.t, "the lock expires", func() bool { return s.gone(node, key) })
	}, incident.Deleted, incident.Low, "1 key expired on "},
	{"DEL", command("DEL"), incident.Deleted, incident.Medium, "DEL was called once on "},
	{"UNLINK", command("UNLINK"), incident.Deleted, incident.Medium, "UNLINK was called once on "},
	{"DEL in a script", func(s *stage, node, key string) {
		s.must(node, "EVAL", "return redis.call('DEL', KEYS[1])", 1, key)
	}, incident.Deleted, incident.Medium, "DEL was called once on "},
	{"EXPIRE", func(s *stage, node, key string) { s.must(node, "EXPIRE", key, 0) },
		incident.Deleted, incident.Medium, "EXPIRE was called once on "},
	{"FLUSHALL", func(s *stage, node, _ string) { s.must(node, "FLUSHALL") },
		incident.Flushed, incident.High, "FLUSHALL was called once on "},
	{"FLUSHDB", func(s *stage, node, _ string) { s.must(node, "FLUSHDB") },
		incident.Flushed, incident.High, "FLUSHDB was called once on "},
}

// TestRemovedLocks takes locks away and has what guard.Do publishes explained.
func TestRemovedLocks(t *testing.T) {
	t.Parallel()
	var cases []cause
	for _, way := range removals {
		cases = append(cases, cause{way.name, way.test})
	}
	play(t, newStage(t, "removals"), append(cases, cause{"a client that stays", namedClient}))
}

func command(name string) func(s *stage, node, key string) {
	return func(s *stage, node, key string) { s.must(node, name, key) }
}

func (s *stage) gone(node, key string) bool {
	left, err := s.on(node, "EXISTS", key).Int()
	return err == nil && left == 0
}

func (way removal) test(t *testing.T, s *stage, key string) {
	sh := s.shard(key)
	s.standing(key, func() {
		if way.cause == incident.Flushed {
			s.looked() // that it came after the grant is seen, then
		}
		way.remove(s, sh.Master, key)
	})
	i := s.explained(key, way.cause, way.row+sh.Master)
	if i.Confidence != way.confidence || !isOf(sh, i) {
		t.Errorf("confidence %s, shard %s, want %s, %s", i.Confidence, i.Shard, way.confidence, sh.Name)
	}
}

// namedClient: a client that stays connected is named.
func namedClient(t *testing.T, s *stage, key string) {
	sh := s.shard(key)
	c := redis.NewClient(&redis.Options{Addr: sh.Master, ClientName: "cleanup", PoolSize: 1, DisableIdentity: true})
	defer c.Close()
	s.standing(key, func() {
		if err := c.Unlink(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		s.looked()
	})
	s.explained(key, incident.Deleted, `named "cleanup"`)
}
