//go:build failpoints

package failpoints_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// What to run: all, ci, or points separated by commas; on which databases, likewise.
const (
	whatVariable = "BELAY_FAILPOINTS"
	onVariable   = "BELAY_FAILPOINTS_ON"
)

// inCI are the deaths of each change, on the first database.
var inCI = []string{"dbtx/committed", "outbox/confirmed", "intake/stored"}

// stage is what all trials share: Redis, a broker, and a monitor that lives.
type stage struct {
	addrs     []string
	redis     *redis.ClusterClient
	amqp      string
	publisher rabbitmq.Publisher
	store     *store.Store

	deaths, violations, excused atomic.Int64
}

func TestFailpoints(t *testing.T) {
	s := setUp(t)
	databases := strings.Split(cmp.Or(os.Getenv(onVariable), "mariadb"), ",")
	for point := range strings.SplitSeq(os.Getenv(whatVariable), ",") {
		if !slices.Contains(append(allPoints(), "", "all", "ci"), point) {
			t.Fatalf("%s: there is no point %q", whatVariable, point)
		}
	}
	t.Run("deaths", func(t *testing.T) {
		for _, on := range databases {
			for _, at := range slices.Concat(situations, calls) {
				s.playAll(t, on, at)
			}
			for _, d := range relayDeaths {
				if chosen(d.point) && os.Getenv(whatVariable) != "ci" {
					s.trial(t, fmt.Sprintf("%s/relay/%s:%d", on, d.point, d.nth), func(t *testing.T) { s.killRelay(t, on, d) })
				}
			}
		}
		for _, point := range monitorPoints {
			for _, nth := range []int{1, monitored} {
				if !chosen(point) || nth > 1 && strings.HasPrefix(point, "incident/") {
					continue
				}
				s.trial(t, fmt.Sprintf("monitor/%s:%d", point, nth), func(t *testing.T) { s.killMonitor(t, point, nth) })
			}
		}
	})
	fmt.Printf("of the victims' events %d were not stored yet: a blind spot that docs/guarantees.md names\n", s.excused.Load())
	fmt.Printf("belay failpoints: %d deaths, %d violations\n", s.deaths.Load(), s.violations.Load())
	if s.violations.Load() > 0 || s.deaths.Load() == 0 {
		t.Fail()
	}
}

// playAll plays a situation once for each of its points and operation.
func (s *stage) playAll(t *testing.T, on string, at situation) {
	for _, point := range at.points {
		for _, do := range at.played() {
			if !chosen(point) || at.passed(point, do) == 0 || shortened(at, do) {
				continue
			}
			s.trial(t, fmt.Sprintf("%s/%s/%s/%s", on, at.name, point, do), func(t *testing.T) {
				newTrial(t, s, on, at, point, do).run()
			})
		}
	}
}

func (s *stage) trial(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Cleanup(func() {
			if t.Failed() || t.Skipped() { // a database that is not there was asked for
				s.violations.Add(1)
			}
		})
		f(t)
	})
}

func chosen(point string) bool {
	switch what := os.Getenv(whatVariable); what {
	case "", "all":
		return true
	case "ci":
		return slices.Contains(inCI, point)
	default:
		return slices.Contains(strings.Split(what, ","), point)
	}
}

// shortened reports whether the form for each change leaves a death out.
func shortened(at situation, do operation) bool {
	return os.Getenv(whatVariable) == "ci" && at.name != "call, settling" && (do != custom && do != request || at.name != "alone" && at.name != "overlap")
}

func setUp(t *testing.T) *stage {
	s := &stage{addrs: teststack.Redis(t), amqp: teststack.AMQP(t)}
	s.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.addrs})
	t.Cleanup(func() { _ = s.redis.Close() })
	s.store = openStore(t, filepath.Join(t.TempDir(), "monitor.db"))
	mon, err := monitor.New(t.Context(), monitor.Config{Store: s.store})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := intake.New(s.amqp, intake.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() { _ = consumer.Run(ctx, mon.Ingest) })
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	s.publisher = newPublisher(t, s.amqp)
	testwait.Until(t, "the monitor reads", func() bool { return consumer.Err() == nil })
	return s
}

func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func newPublisher(t *testing.T, url string) rabbitmq.Publisher {
	t.Helper()
	p, err := rabbitmq.New(url, rabbitmq.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

// reported returns the events of a key in the monitor's store, once that has all that was
// published before.
func (s *stage) reported(t *testing.T, key string) (found []notify.Event) {
	t.Helper()
	mark := newEvent("mark", key+":mark")
	if err := s.publisher.Publish(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the monitor has what was published before", func() bool { return len(s.events(t, mark.Key)) == 1 })
	return s.events(t, key)
}

func (s *stage) events(t *testing.T, key string) (found []notify.Event) {
	t.Helper()
	list, err := s.store.Events(t.Context(), store.EventFilter{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		found = append(found, r.Event)
	}
	return found
}

func newEvent(service, key string) notify.Event {
	return notify.Event{
		ID: uuid.NewString(), Service: service, Instance: "test", Key: key, CaughtAt: time.Now(), Count: 1,
		Verdict: notify.VerdictUnknownCommit, Outcome: notify.OutcomeUnknown,
	}
}

func migrate(ctx context.Context, db *gorm.DB) error {
	return errors.Join(outbox.Migrate(ctx, db), once.Migrate(ctx, db), once.MigrateCalls(ctx, db), relay.Migrate(ctx, db))
}
