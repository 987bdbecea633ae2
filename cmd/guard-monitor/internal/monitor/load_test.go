package monitor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// maxMemory bounds what the whole process may need for events in any number:
// they wait in the broker, then in the store. Without the race detector, which
// needs several times as much, it is some 50 MiB.
const maxMemory = 400 << 20

// TestLoad has events come all at once and then at a steady rate through the
// broker, the consumer, the store and the grouping. BELAY_LOAD=full makes them
// 10,000 at once and 200/s for a minute.
func TestLoad(t *testing.T) {
	atOnce, seconds := 1000, 3
	if os.Getenv("BELAY_LOAD") == "full" {
		atOnce, seconds = 10_000, 60
	}
	const rate = 200
	l := newLoad(t)

	began := time.Now()
	l.publish(t, atOnce, 0)
	published := time.Since(began)
	l.await(t, atOnce)
	burst := time.Since(began)

	began = time.Now()
	l.publish(t, rate*seconds, time.Second/rate)
	steady := time.Since(began)
	total := atOnce + rate*seconds
	l.await(t, total)
	t.Logf("%d events at once: published in %v, stored and grouped %v after the first; %d in %v: grouped %v after the last; memory at most %d MiB",
		atOnce, published.Round(time.Millisecond), burst.Round(time.Millisecond), rate*seconds, steady.Round(time.Millisecond),
		(time.Since(began) - steady).Round(time.Millisecond), l.peak.Load()>>20)
	l.check(t, total)
}

type load struct {
	store   *store.Store
	channel *amqp.Channel
	sent    int
	peak    atomic.Uint64 // bytes of resident memory
}

func newLoad(t *testing.T) *load {
	t.Helper()
	url := teststack.AMQP(t)
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	l := &load{store: st}
	consumer, err := intake.New(url, intake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tracker := incident.NewTracker(incident.Config{Store: st, Every: 200 * time.Millisecond, Settle: -1})
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	if l.channel, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	if err := l.channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	m := newMonitor(t, st, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = consumer.Run(ctx, m.Ingest) })
	parts.Go(func() { _ = tracker.Run(ctx) })
	parts.Go(func() { l.measure(ctx) })
	t.Cleanup(func() {
		cancel()
		parts.Wait()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	testwait.Until(t, "the consumer reads its queue", func() bool { return consumer.Err() == nil })
	return l
}

// measure keeps the largest amount of memory. SQLite's is not in Go's heap.
func (l *load) measure(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.peak.Store(max(l.peak.Load(), resident()))
		}
	}
}

// publish sends n events, one every so often. It waits for the confirms at the
// end only, so that the broker is not the measure.
func (l *load) publish(t *testing.T, n int, every time.Duration) {
	t.Helper()
	began := time.Now()
	confirms := make([]*amqp.DeferredConfirmation, n)
	for k := range n {
		if due := time.Until(began.Add(time.Duration(k) * every)); due > 0 {
			<-time.After(due)
		}
		l.sent++
		ev := event(fmt.Sprintf("load-%d", l.sent))
		ev.Key, ev.CaughtAt = fmt.Sprintf("order:%d", l.sent%5000), time.Now()
		ev.Place = notify.Place{Node: "127.0.0.1:7000", Slot: l.sent % 16384}
		body, err := ev.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		confirms[k], err = l.channel.PublishWithDeferredConfirm(rabbit.Exchange, "event.overlap", false, false,
			amqp.Publishing{ContentType: "application/cloudevents+json", DeliveryMode: amqp.Persistent, MessageId: ev.ID, Body: body})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range confirms {
		if ok, err := c.WaitContext(ctx); !ok || err != nil {
			t.Fatalf("an event was not confirmed: %v", err)
		}
	}
}

// await waits until n events are in incidents.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	for grouped := l.grouped(t); grouped < int64(n); {
		before := grouped
		testwait.Until(t, fmt.Sprintf("more than %d of %d events are grouped", before, n), func() bool {
			grouped = l.grouped(t)
			return grouped > before
		})
	}
}

func (l *load) grouped(t *testing.T) (n int64) {
	t.Helper()
	list, err := l.store.OpenIncidents(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		n += i.Events
	}
	return n
}

func (l *load) check(t *testing.T, total int) {
	t.Helper()
	counts, err := l.store.Counts(context.Background())
	if err != nil || counts[notify.VerdictOverlap].Events != int64(total) {
		t.Errorf("stored %+v, %v, want %d events", counts, err, total)
	}
	if left, err := l.store.Ungrouped(context.Background(), 10); err != nil || len(left) != 0 {
		t.Errorf("%d events are in no incident, %v", len(left), err)
	}
	list, err := l.store.OpenIncidents(context.Background())
	if err != nil || len(list) != 1 || list[0].Events != int64(total) || list[0].Keys != min(5000, int64(total)) {
		t.Errorf("incidents %+v, %v, want one of %d events", list, err, total)
	}
	if peak := l.peak.Load(); peak == 0 || peak > maxMemory {
		t.Errorf("the process grew to %d MiB, want at most %d", peak>>20, maxMemory>>20)
	}
}

// resident is the memory that this process has now, as Linux tells it.
func resident() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 1 // not known here
	}
	var size, pages uint64
	_, _ = fmt.Sscan(string(b), &size, &pages)
	return pages * uint64(os.Getpagesize())
}
