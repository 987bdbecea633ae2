package alerts_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// A fault plays with a stage and returns the account of its events.
type fault struct {
	name string
	play func(*stage) account
}

// ofBroker are the faults that all virtual hosts of the broker notice.
var ofBroker = []fault{
	{"broker killed and restarted under load", brokerKilled},
	{"memory alarm, connection.blocked", memoryAlarm},
	{"broker away for the whole run, then back", brokerAway},
}

// ofQueue are faults of one virtual host.
var ofQueue = []fault{
	{"queue deleted", queueDeleted},
	{"unroutable until the monitor comes", unroutable},
}

// ofRequests are faults of a monitor that events are posted to.
var ofRequests = []fault{
	{"monitor killed and restarted under load", serverKilled},
	{"monitor away for the whole run, then back", serverAway},
	{"answers lost", answersLost},
	{"connection cut in the body", cutInTheBody},
	{"monitor slower than the timeout", slowServer},
	{"monitor overloaded, 429", overloaded},
	{"store of the monitor fails, 503", storeFails},
	{"token refused, 401", tokenRefused},
}

// ofAnyWay are faults of every way.
var ofAnyWay = []fault{
	{"endpoint accepts and drops", acceptThenDrop},
	{"link half open", linkHalfOpen},
	{"monitor killed before and after the store", monitorKilled},
	{"two relays on one table", twoRelays},
	{"database away when events are stored", databaseAway},
	{"process killed after the outbox commit", processKilled},
}

func TestFaults(t *testing.T) {
	broker := teststack.StartBroker(t, "alerts")
	t.Run("RabbitMQ", func(t *testing.T) { play(t, overRabbitMQ, broker, ofBroker, slices.Concat(ofQueue, ofAnyWay)) })
	t.Run("HTTP", func(t *testing.T) { play(t, overHTTP, nil, nil, slices.Concat(ofRequests, ofAnyWay)) })
}

// play plays all faults of a way: some one after the other, the others beside each other.
func play(t *testing.T, way way, broker *teststack.Broker, alone, beside []fault) {
	all := new(accounts)
	fmt.Printf("%-42s %7s %7s %9s %8s %11s %5s\n", "fault, over "+way, "taken", "stored", "published", "received", "stored once", "lost")
	for _, f := range alone {
		t.Run(f.name, func(t *testing.T) { all.add(f.name, f.play(newStage(t, way, broker))) })
	}
	t.Run("beside each other", func(t *testing.T) {
		for _, f := range beside {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				all.add(f.name, f.play(newStage(t, way, broker)))
			})
		}
	})
	played, faults := all.n, len(alone)+len(beside)
	t.Run("callers", func(t *testing.T) {
		all.add("intercepted calls, way open and closed", slowness(t, newStage(t, way, broker)))
	})
	if played != faults {
		t.Errorf("%d of %d faults were played to their end", played, faults)
	}
	total := all.total
	if total.once != total.taken || total.lost != 0 {
		t.Error("events are not stored once")
	}
	fmt.Printf("belay alerts: %d events, %d stored once, %d lost, %d faults, over %s\n", total.taken, total.once, total.lost, played, way)
}

// accounts adds up the accounts of the faults that were played to their end.
type accounts struct {
	mu    sync.Mutex
	n     int
	total account
}

func (all *accounts) add(name string, a account) {
	all.mu.Lock()
	defer all.mu.Unlock()
	fmt.Printf("%-42s %s\n", name, a)
	all.n++
	all.total.taken += a.taken
	all.total.once += a.once
	all.total.lost += a.lost
}

func brokerKilled(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(200, r)
	s.broker.Sync(s.t)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		s.load(600, r)
	}()
	s.broker.Kill(s.t)
	s.broker.Start(s.t)
	<-loaded
	s.load(200, r)
	return s.settle(r)
}

func acceptThenDrop(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(100, r)
	s.link.become(dropping)
	s.load(200, r)
	testwait.Until(s.t, "several connections were dropped", func() bool { return s.link.drops() > 2 })
	s.link.become(sound)
	return s.settle(r)
}

func linkHalfOpen(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(100, r)
	s.link.become(halfOpen)
	s.load(200, r)
	testwait.Until(s.t, "an answer is missed", func() bool { return r.count("failed") > 0 })
	s.link.become(sound)
	return s.settle(r)
}

// memoryAlarm lets the broker believe that it has no memory left: it stops
// reading from those who publish.
func memoryAlarm(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(100, r)
	s.broker.Control(s.t, "set_vm_memory_high_watermark", "0.00001")
	s.load(200, r)
	testwait.Until(s.t, "the broker says that it is blocked", func() bool { return r.count("blocked") > 0 })
	s.broker.Control(s.t, "set_vm_memory_high_watermark", "0.4")
	return s.settle(r)
}

// queueDeleted deletes the queue under publishers and monitor, once it is empty:
// what is in a queue goes with it.
func queueDeleted(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(100, r)
	testwait.Until(s.t, "the queue is empty", func() bool {
		_, lost := s.ledger.check(s.t, s.taken)
		return lost == 0 && testmetric.Sum(s.t, r.Outbox, "belay_outbox_backlog") == 0
	})
	s.onChannel(func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(rabbit.Queue, false, false, false)
		return err
	})
	s.load(200, r)
	return s.settle(r)
}

func unroutable(s *stage) account {
	r := s.report(s.db)
	s.load(200, r)
	testwait.Until(s.t, "an event is unroutable", func() bool { return r.count("unroutable") > 0 })
	s.reading()
	return s.settle(r)
}

// monitorKilled kills the monitor's process when it has not stored an event yet, and when it
// has and not answered: that event comes again.
func monitorKilled(s *stage) account {
	s.declare()
	r := s.report(s.db)
	s.load(200, r)
	for _, stands := range []string{stored, received, stored} {
		p := s.monitor(stands)
		awaitLine(p, stands)
		p.Kill()
	}
	s.reading()
	a := s.settle(r)
	if a.received <= a.taken {
		s.t.Errorf("%d deliveries of %d events: none came again", a.received, a.taken)
	}
	return a
}

func twoRelays(s *stage) account {
	s.reading()
	one, two := s.report(s.db), s.report(testdb.OpenMySQL(s.t, s.dsn))
	s.load(600, one, two)
	return s.settle(one, two)
}

// brokerAway has a whole run without a broker. Its process ends with events
// stored; the next one sends them.
func brokerAway(s *stage) account {
	s.declare()
	s.broker.Sync(s.t)
	s.broker.Kill(s.t)
	r := s.report(s.db)
	s.load(500, r)
	if r.end(time.Second) {
		s.t.Error("drained without a broker")
	}
	s.broker.Start(s.t)
	s.reading()
	return s.settle(s.report(s.db))
}

// databaseAway has no database when the events happen: they are published at once.
func databaseAway(s *stage) account {
	s.reading()
	cfg, err := mysql.ParseDSN(s.dsn)
	if err != nil {
		s.t.Fatal("the DSN is none")
	}
	way := newLink(s.t, cfg.Addr)
	cfg.Addr = way.addr
	r := s.report(testdb.OpenMySQL(s.t, cfg.FormatDSN()))
	s.load(100, r)
	way.become(refusing)
	s.load(100, r)
	way.become(dropping)
	s.load(100, r)
	way.become(sound)
	s.load(100, r)
	if n := testmetric.Sum(s.t, r.Outbox, "belay_outbox_direct_total"); n < 200 {
		s.t.Errorf("%v events were published directly, want those of the outage", n)
	}
	return s.settle(r)
}

// processKilled kills a process that has committed events and not sent them.
func processKilled(s *stage) account {
	s.link.become(refusing)
	const events = 50
	p := s.child("reporter", s.linked(), "CHILD_EVENTS="+strconv.Itoa(events))
	ids := awaitLine(p, "committed")
	p.Kill()
	if len(ids) != events {
		s.t.Fatalf("the process reported %d events, want %d", len(ids), events)
	}
	s.took(ids...)
	s.rows += events
	s.link.become(sound)
	s.reading()
	r := s.report(s.db)
	// The row that the dead process was at is its own for the rest of the lease.
	testwait.Until(s.t, "all rows are relayed", func() bool { return testmetric.Sum(s.t, r.Outbox, "belay_outbox_backlog") == 0 })
	return s.settle(r)
}

func (s *stage) onChannel(do func(*amqp.Channel) error) {
	s.t.Helper()
	conn, err := amqp.Dial(s.amqp)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		err = do(ch)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
