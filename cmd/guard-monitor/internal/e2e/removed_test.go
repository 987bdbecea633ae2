package e2e_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

func lockDeleted(_ *testing.T, s *stage) string {
	return s.removed("d", incident.Deleted, func(key string) []any { return []any{"DEL", key} })
}

func nodeFlushed(_ *testing.T, s *stage) string {
	return s.removed("e", incident.Flushed, func(string) []any { return []any{"FLUSHALL"} })
}

// removed has somebody send a command to the node that has the lock of an instance
// that stands in its transaction, and another instance insert the same order then.
func (s *stage) removed(no string, cause incident.Cause, command func(key string) []any) string {
	s.t.Helper()
	key := "order:" + no
	at := s.cluster.shardOf(key)
	a := s.start("A", "-hold", "-key", key, "-order", no)
	a.await("stands")
	args := command(key)
	if err := s.cluster.on(at.master, args...).Err(); err != nil {
		s.t.Fatal(err)
	}
	b := s.start("B", "-key", key, "-order", no, "-wait", "30s")
	s.want(b.await("ended"), "done")
	b.finish()
	a.Proceed()
	s.want(a.await("ended"), "intercepted")
	a.finish()

	ev := s.event(key, notify.VerdictOverlap, notify.OutcomeRefused)
	told := s.told(cause)
	for _, part := range []string{"e2e: nothing was changed; ", "1 operation was rolled back and changed nothing", args[0].(string) + " was called once on " + at.master} {
		if !strings.Contains(told, part) {
			s.t.Errorf("the alert lacks %q:%s", part, told)
		}
	}
	return s.summary(ev, s.orders(no, "B")) + told
}
