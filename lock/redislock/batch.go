package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/lock/lockengine"
)

// maxBatch is how many commands are sent together.
const maxBatch = 256

// A batcher sends commands to one node together: while a batch is on its way,
// the next one gathers.
type batcher struct {
	client  *redis.Client
	running sync.WaitGroup

	mu      sync.Mutex
	queue   []*queued
	sending bool
	closed  bool
}

// A queued is a command in a batcher.
type queued struct {
	cmd   *command
	state atomic.Int32 // waiting, sent or withdrawn
	done  chan struct{}
	err   error // why it was not sent, or has no answer
}

const (
	stateWaiting = iota
	stateSent
	stateWithdrawn
)

// send sends cmd with others. When ctx ends before it was sent it never will
// be, and the error matches lockengine.ErrNotSent.
func (b *batcher) send(ctx context.Context, cmd *command) error {
	p := &queued{cmd: cmd, done: make(chan struct{})}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed
	}
	b.queue = append(b.queue, p)
	if !b.sending {
		b.sending = true
		b.running.Go(b.run)
	}
	b.mu.Unlock()
	select {
	case <-p.done:
		if p.err != nil {
			return p.err
		}
		return cmd.Err()
	case <-ctx.Done():
		if p.state.CompareAndSwap(stateWaiting, stateWithdrawn) {
			return fmt.Errorf("%w: %w", lockengine.ErrNotSent, ctx.Err())
		}
		return ctx.Err()
	}
}

// run sends batches until there is nothing left to send.
func (b *batcher) run() {
	for batch := b.next(); len(batch) > 0; batch = b.next() {
		err := background.Do(nil, "redislock: send requests", func() error { return b.exchange(batch) })
		for _, p := range batch {
			if errors.Is(err, background.ErrPanic) { // the client panicked: some may have been executed
				p.err = fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err)
			}
			close(p.done)
		}
		if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
			b.giveUp(err)
		}
	}
}

// next takes the next batch from the queue.
func (b *batcher) next() []*queued {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), maxBatch)
	batch := b.queue[:n:n]
	if b.queue = b.queue[n:]; len(b.queue) == 0 {
		b.queue = nil
	}
	b.sending = n > 0
	return batch
}

func (b *batcher) exchange(batch []*queued) error {
	var cmds []*command
	for _, p := range batch {
		if p.state.CompareAndSwap(stateWaiting, stateSent) {
			cmds = append(cmds, p.cmd)
		}
	}
	return pipeline(context.Background(), b.client.Pipeline(), cmds) // the client's timeouts bound it
}

// giveUp drops the queued requests unsent: the last batch has just timed out at the
// node.
func (b *batcher) giveUp(reason error) {
	b.mu.Lock()
	queue := b.queue
	b.queue = nil
	b.mu.Unlock()
	for _, p := range queue {
		p.err = fmt.Errorf("%w: %w", lockengine.ErrNotSent, reason)
		close(p.done)
	}
}

// close takes nothing more, and waits until all batches are through.
func (b *batcher) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.running.Wait()
}
