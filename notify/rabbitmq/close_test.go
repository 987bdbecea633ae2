package rabbitmq_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/rabbitmq"
)

func TestCloseEndsEverything(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	p := newPublisher(t, broker, rabbitmq.Config{})
	publish(t, p, 0)
	var publishers sync.WaitGroup
	for i := range 20 {
		publishers.Go(func() {
			for n := 0; ; n++ {
				err := p.Publish(t.Context(), event(100*i+n))
				if errors.Is(err, rabbitmq.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("err = %v, want nil or ErrClosed", err)
					return
				}
			}
		})
	}
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	publishers.Wait()
	if err := p.Ping(t.Context()); !errors.Is(err, rabbitmq.ErrClosed) {
		t.Errorf("ping: err = %v, want ErrClosed", err)
	}
}

func TestCloseOfAPublisherNeverUsed(t *testing.T) {
	p := newPublisher(t, "amqp://broker.invalid", rabbitmq.Config{})
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Publish(t.Context(), event(1)); !errors.Is(err, rabbitmq.ErrClosed) {
		t.Errorf("err = %v, want ErrClosed", err)
	}
}

// The broker keeps its mouth shut when the publisher says good-bye.
func TestCloseWithoutAnswer(t *testing.T) {
	t.Parallel()
	p, net, broker := newProxied(t, rabbitmq.Config{Timeout: time.Hour})
	release := net.Hold()
	defer release()
	result := make(chan error, 1)
	go func() { result <- p.Publish(t.Context(), event(2)) }()
	testwait.Until(t, "the broker has the event", func() bool { return testamqp.Depth(t, broker, rabbit.Queue) == 2 })
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, rabbitmq.ErrClosed) {
		t.Errorf("err = %v, want ErrClosed", err)
	}
}

// The broker reads no more, and the event is larger than all buffers between:
// the write itself hangs.
func TestCloseWhileAWriteHangs(t *testing.T) {
	t.Parallel()
	p, net, _ := newProxied(t, rabbitmq.Config{Timeout: time.Hour})
	release := net.Deafen()
	defer release()
	said := net.Said.Load()
	large := event(2)
	large.Key = strings.Repeat("k", 24<<20)
	result := make(chan error, 1)
	go func() { result <- p.Publish(t.Context(), large) }()
	testwait.Until(t, "the write has begun", func() bool { return net.Said.Load() > said })
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-result; err == nil {
		t.Error("published")
	}
}
