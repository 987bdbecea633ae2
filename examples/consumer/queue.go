package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/inbox"
)

// queue stands for a message broker: it redelivers unacknowledged messages, and
// delivers every third message twice at the same time.
type queue struct {
	messages  chan Message
	open      sync.WaitGroup // messages that are not acknowledged yet
	delivered atomic.Int64
}

func newQueue(to []Account) *queue {
	q := &queue{messages: make(chan Message, 2*payments)}
	run := time.Now().UnixNano() // message ids of another run are other ids
	for n := range payments {
		q.add(Message{ID: fmt.Sprintf("%d-%d", run, n), Account: to[n%len(to)].ID, Cents: 100}, 1+max(0, 1-n%3))
	}
	return q
}

func (q *queue) add(m Message, times int) {
	for range times {
		q.open.Add(1)
		q.messages <- m
	}
}

// serve delivers until every message has been acknowledged, or one cannot be handled.
func (q *queue) serve(ctx context.Context, h *handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var consumers sync.WaitGroup
	for range workers {
		consumers.Go(func() { q.consume(ctx, h, cancel) })
	}
	go func() { // ends with the last acknowledgement, or with the program
		q.open.Wait()
		close(q.messages)
	}()
	consumers.Wait()
	return context.Cause(ctx)
}

func (q *queue) consume(ctx context.Context, h *handler, fail context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-q.messages:
			if !ok {
				return
			}
			q.delivered.Add(1)
			switch decision, err := h.handle(ctx, m); decision {
			case inbox.Ack:
				q.open.Done()
			case inbox.Retry:
				q.messages <- m
			default:
				fail(err)
				return
			}
		}
	}
}
