package alerts_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// A stage is what one fault is played on: a database, and a link between the reporters
// and a virtual host of the suite's own broker, or the monitor.
type stage struct {
	t      *testing.T
	way    way
	broker *teststack.Broker // nil over HTTP
	dsn    string
	db     *gorm.DB
	ledger ledger
	amqp   string // past the link; empty over HTTP
	link   *link

	mu        sync.Mutex
	taken     []string // ids of the events that an outbox took
	rows      int      // that were stored in the outbox
	published int      // with a confirm, or directly
}

func newStage(t *testing.T, way way, broker *teststack.Broker) *stage {
	t.Helper()
	s := &stage{t: t, way: way, broker: broker, dsn: teststack.MySQL(t)}
	s.db = testdb.OpenMySQL(t, s.dsn)
	s.ledger = ledger{s.db}
	if err := outbox.Migrate(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	if err := s.ledger.migrate(); err != nil {
		t.Fatal(err)
	}
	if way == overHTTP {
		s.link = newLink(t, "") // until there is a monitor
		return s
	}
	s.amqp = broker.AMQP(t)
	u, err := url.Parse(s.amqp)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	s.link = newLink(t, u.Host)
	return s
}

func newEvent() notify.Event {
	id := uuid.NewString()
	return notify.Event{
		ID: id, Service: "alerts", Instance: "test", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:" + id, CaughtAt: time.Now(), Count: 1,
	}
}

// A reporter is an instance of a service: an outbox with a publisher of its own.
type reporter struct {
	*outbox.Outbox

	s       *stage
	link    publisher
	closing sync.Once
}

// count returns how many of its publishes had a result.
func (r *reporter) count(result string) float64 {
	return testmetric.Sum(r.s.t, r.link, r.s.way.results(), "result", result)
}

// report starts a reporter on db. It is closed, and must have drained, when
// the fault is over: see settle.
func (s *stage) report(db *gorm.DB) *reporter {
	s.t.Helper()
	p, err := s.way.publisher(s.linked())
	if err != nil {
		s.t.Fatal(err)
	}
	o, err := outbox.New(db, outbox.Config{
		Relay: p, RelayTimeout: 2 * time.Second,
		Service: "alerts", HeartbeatInterval: 200 * time.Millisecond,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	r := &reporter{Outbox: o, s: s, link: p}
	s.t.Cleanup(func() { r.end(0) })
	return r
}

// end closes the reporter and adds up what it did. It reports whether nothing
// is left in the table.
func (r *reporter) end(limit time.Duration) (drained bool) {
	r.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		drained = r.Close(ctx) == nil
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.link.Close(closing); err != nil {
			r.s.t.Error(err)
		}
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		r.s.rows += int(testmetric.Sum(r.s.t, r.Outbox, "belay_outbox_stored_total"))
		r.s.published += int(testmetric.Sum(r.s.t, r.Outbox, "belay_outbox_published_total") + testmetric.Sum(r.s.t, r.Outbox, "belay_outbox_direct_total"))
		if n := testmetric.Sum(r.s.t, r.Outbox, "belay_outbox_lost_total"); n != 0 {
			r.s.t.Errorf("the outbox counts %v events as lost", n)
		}
	})
	return drained
}

// load has n events reported by several callers, by turns to each reporter, and
// returns when the outbox has taken them.
func (s *stage) load(n int, reporters ...*reporter) {
	s.t.Helper()
	var callers sync.WaitGroup
	work := make(chan int)
	for range 8 {
		callers.Go(func() {
			for i := range work {
				s.publish(reporters[i%len(reporters)])
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	callers.Wait()
}

func (s *stage) publish(r *reporter) {
	ev := newEvent()
	if err := r.Publish(s.t.Context(), ev); err != nil {
		s.t.Errorf("the outbox did not take an event: %v", err)
		return
	}
	s.took(ev.ID)
}

func (s *stage) took(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, ids...)
}

// settle closes the reporters, waits until the monitor has what they sent, and
// returns the account.
func (s *stage) settle(reporters ...*reporter) account {
	s.t.Helper()
	for _, r := range reporters {
		if !r.end(60 * time.Second) {
			s.t.Error("a reporter did not drain")
		}
	}
	a := account{taken: len(s.taken)}
	deadline := time.Now().Add(60 * time.Second)
	for {
		a.once, a.lost = s.ledger.check(s.t, s.taken)
		if a.lost == 0 || time.Now().After(deadline) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if a.once != a.taken || a.lost != 0 {
		s.t.Errorf("of %d events %d are stored once, %d are lost", a.taken, a.once, a.lost)
	}
	var left int64
	if err := s.db.Table("belay_outbox").Count(&left).Error; err != nil || left != 0 {
		s.t.Errorf("%d rows are left in the outbox: %v", left, err)
	}
	a.stored, a.published, a.received = s.rows, s.published, s.ledger.received(s.t)
	return a
}

// An account is what became of the events of one fault.
type account struct {
	taken, stored, published, received, once, lost int
}

func (a account) String() string {
	return fmt.Sprintf("%7d %7d %9d %8d %11d %5d", a.taken, a.stored, a.published, a.received, a.once, a.lost)
}
