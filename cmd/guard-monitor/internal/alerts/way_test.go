package alerts_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
	"github.com/belaygo/belay/notify/webhook"
)

// A way is how events come from an outbox to the monitor.
type way string

const (
	overRabbitMQ way = "RabbitMQ"
	overHTTP     way = "HTTP" // posted to the monitor
)

// token is that of the reporters who post.
const token = "a-token-of-the-reporters"

// others are the tokens of other senders.
var others = [...]string{"a-token-of-one-other", "a-token-of-another"}

// A publisher takes events out of an outbox.
type publisher interface {
	notify.Publisher
	prometheus.Collector
	Close(ctx context.Context) error
}

// publisher returns one to an address of the way.
func (w way) publisher(address string) (publisher, error) {
	if w == overHTTP {
		return webhook.New(address, webhook.Config{Token: token, Timeout: time.Second})
	}
	return rabbitmq.New(address, rabbitmq.Config{Timeout: time.Second, DialTimeout: 2 * time.Second})
}

// results is the metric of what became of the events that a publisher was given.
func (w way) results() string {
	if w == overHTTP {
		return "belay_webhook_published_total"
	}
	return "belay_rabbitmq_published_total"
}

// linked returns the address for reporters, by way of the link.
func (s *stage) linked() string {
	if s.way == overHTTP {
		return "http://" + s.link.addr
	}
	u, err := url.Parse(s.amqp)
	if err != nil {
		s.t.Fatal("the broker's URL is none")
	}
	u.Host = s.link.addr
	return u.String()
}

// declare has the broker keep events before a monitor runs.
func (s *stage) declare() {
	s.t.Helper()
	if s.way == overHTTP {
		return
	}
	if err := intake.Declare(s.t.Context(), s.amqp); err != nil {
		s.t.Fatal(err)
	}
}

// reading runs a monitor that stores into the ledger, until the stage is over, and waits
// until events can come.
func (s *stage) reading() {
	s.t.Helper()
	if s.way == overHTTP {
		s.serve(token, s.ledger.store)
		return
	}
	c, err := intake.New(s.amqp, intake.Config{Heartbeat: func(context.Context, heartbeat.Heartbeat, string) {}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.background(func(ctx context.Context) {
		_ = c.Run(ctx, func(ctx context.Context, ev notify.Event, _ []byte, _ string) error {
			_, err := s.ledger.store(ctx, ev)
			return err
		})
	})
	testwait.Until(s.t, "the monitor reads", func() bool { return c.Err() == nil })
}

// A take stores an event, and reports whether it was new.
type take func(ctx context.Context, ev notify.Event) (added bool, err error)

// newEndpoint returns what takes posted events. Like the monitor it stores also for a sender
// that has gone.
func newEndpoint(token string, store take) (*intake.Endpoint, error) {
	senders := []intake.Sender{{Name: "alerts", Token: token, Services: []string{"alerts"}}}
	for _, other := range others {
		senders = append(senders, intake.Sender{Name: other, Token: other, Services: []string{"alerts"}})
	}
	return intake.NewEndpoint(intake.EndpointConfig{
		Senders: senders,
		Take: func(ctx context.Context, ev notify.Event, _ []byte, _ string) (bool, error) {
			return store(context.WithoutCancel(ctx), ev)
		},
		Heartbeat: func(context.Context, heartbeat.Heartbeat, string) error { return nil },
		Logger:    slog.New(slog.DiscardHandler),
	})
}

// serve runs a monitor that events are posted to, and leads the link there. It returns its
// address, and what stops it.
func (s *stage) serve(token string, store take) (addr string, stop func()) {
	s.t.Helper()
	endpoint, err := newEndpoint(token, store)
	if err != nil {
		s.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	stop = s.background(func(ctx context.Context) {
		if err := web.Serve(ctx, ln, endpoint, nil, slog.New(slog.DiscardHandler)); err != nil {
			s.t.Error(err)
		}
	})
	s.link.lead(ln.Addr().String())
	return ln.Addr().String(), stop
}

// background runs f until stop is called or the stage is over.
func (s *stage) background(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	s.t.Cleanup(stop)
	return stop
}

// serveChild is serve in a process of its own, which says its address.
func serveChild(store take) error {
	endpoint, err := newEndpoint(token, store)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listening + ln.Addr().String())
	return web.Serve(context.Background(), ln, endpoint, nil, slog.New(slog.DiscardHandler))
}
