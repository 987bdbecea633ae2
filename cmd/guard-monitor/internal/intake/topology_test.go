package intake_test

import (
	"net/url"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// The topology is declared through whichever node is there.
func TestDeclareThroughSeveralNodes(t *testing.T) {
	broker := teststack.AMQP(t)
	one, through := testamqp.NewProxy(t, broker)
	two, _ := testamqp.NewProxy(t, broker)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	u.Host = one.Addr + "," + two.Addr
	one.Refuse()
	if err := intake.Declare(t.Context(), u.String()); err != nil {
		t.Error(err)
	}
	two.Refuse()
	if err := intake.Declare(t.Context(), u.String()); err == nil {
		t.Error("declared without a broker")
	}
}

// When the dead letters are full the rest stays in the queue, until that is full
// as well and refuses events. Nothing is dropped.
func TestFullDeadLetters(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	teststack.LimitQueue(t, broker, rabbit.Queue, 50)
	teststack.LimitQueue(t, broker, intake.DeadQueue, 10)
	declare(t, broker)
	s := store{fail: func(notify.Event) error { return intake.ErrReject }}
	c, _ := consume(t, broker, intake.Config{}, s.handle)
	testwait.Until(t, "it is connected", connected(c))
	p := newPublisher(t, broker, rabbitmq.Config{})
	published := 0
	testwait.Until(t, "events are refused", func() bool {
		err := p.Publish(t.Context(), event(published))
		if err == nil {
			published++
		}
		refused := testmetric.Sum(t, p, "belay_rabbitmq_published_total", "result", "refused")
		return err != nil && refused > 0 && testamqp.Depth(t, broker, intake.DeadQueue) >= 10
	})
	if dead := testamqp.Depth(t, broker, intake.DeadQueue); dead >= published {
		t.Errorf("%d dead letters of %d events, want that some wait", dead, published)
	}
}
