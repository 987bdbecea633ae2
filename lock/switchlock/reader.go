package switchlock

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/wait"
)

// The shortest time between two reads, however many requests wait for one: after a success, and
// after a failure.
const (
	pauseAfterRead    = 20 * time.Millisecond
	pauseAfterFailure = 200 * time.Millisecond
)

// run reads the record five times in a Lease, and at once if a request needs that, until the
// engine is closed.
func (e *engine) run() {
	defer close(e.ended)
	var following sync.WaitGroup
	following.Go(e.follow)
	defer following.Wait()
	for {
		pause := pauseAfterRead
		if err := background.Do(e.cfg.Logger, "follow the record", e.refresh); err != nil {
			pause = pauseAfterFailure
		}
		wait.Wake(e.moved)
		if wait.Sleep(e.ctx, pause, nil) != nil || wait.Sleep(e.ctx, e.nextRead(), e.kick) != nil {
			return
		}
	}
}

// follow moves watches to the engines that locks are released in, until e is closed. It runs
// beside the reads of the record, so that an engine that does not answer does not delay them.
func (e *engine) follow() {
	defer e.watchers.close(e.cfg.Logger)
	for e.ctx.Err() == nil {
		e.watchers.move(e.feed(), e.cfg.Logger)
		select {
		case <-e.moved:
		case <-e.ctx.Done():
		}
	}
}

// nextRead returns how long until the record is read again if no request needs it before.
func (e *engine) nextRead() time.Duration {
	v, now := e.look(), e.now()
	next := cmp.Or(v.known.Lease, e.cfg.Lease) / 5
	if v.crosses(now) {
		next = min(next, v.cross-now) // then watches move to the new engine
	}
	return next
}

// refresh reads the record, writes that a switch is settled if it is, and logs what changed.
func (e *engine) refresh() error {
	before := e.look().known
	ctx, cancel := context.WithTimeout(e.ctx, cmp.Or(before.Lease, e.cfg.Lease)/2)
	defer cancel()
	err := background.Do(e.cfg.Logger, "read the record", func() error { return e.learn(ctx) })
	after := e.look()
	// A process that lacks the new engine does not say that locks are there: it may be that
	// nobody has it, as its name was misspelt.
	if err == nil && after.maySettle(e.now()) && e.cfg.Engines[after.known.To] != nil {
		err = background.Do(e.cfg.Logger, "settle the switch", func() error { return e.settle(ctx, after.known) })
	}
	again := e.answer(err)
	e.log(before, e.look().known, err, again)
	return err
}

// learn reads the record, and writes the first one if there is none.
func (e *engine) learn(ctx context.Context) error {
	started := e.now()
	r, err := e.cfg.Source.Read(ctx)
	if err == nil && r.Epoch == 0 && e.look().known.Epoch == 0 {
		err = e.cfg.Source.Swap(ctx, Record{}, e.cfg.first())
		if err == nil || errors.Is(err, ErrChanged) {
			r, err = e.cfg.Source.Read(ctx) // as the source has it
		}
	}
	if err != nil {
		return err
	}
	return e.take(ctx, r, started)
}

// take makes r the record that this process acts on. If the source has lost the record that this
// process knows, take restores it.
func (e *engine) take(ctx context.Context, r Record, started time.Duration) error {
	e.mu.Lock()
	known := e.view.known
	v, err := e.view.learn(r, started, e.now())
	if err == nil {
		if v.known.Epoch != known.Epoch {
			clear(e.both)
		}
		e.view = v
	}
	e.mu.Unlock()
	if errors.Is(err, errLost) {
		// Others may rely on r, so what this process knows becomes a switch from it.
		return errors.Join(err, e.cfg.Source.Swap(ctx, r, r.restore(known)))
	}
	return err
}

// settle writes that the switch is over, unless another process has written that.
func (e *engine) settle(ctx context.Context, r Record) error {
	err := e.cfg.Source.Swap(ctx, r, r.settle())
	if err != nil && !errors.Is(err, ErrChanged) {
		return err
	}
	return e.learn(ctx)
}

// answer ends the wait of requests for a read, and keeps its error for them. It reports whether
// the read before this one had failed, too.
func (e *engine) answer(err error) (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	again = e.failed != nil && !errors.Is(e.failed, errNotRead)
	e.failed = err
	close(e.read)
	e.read = make(chan struct{})
	return again
}

// log logs what has changed, and the first of several reads that fail.
func (e *engine) log(before, after Record, err error, again bool) {
	_, lacks := e.planOf(after, e.look().holding(e.now()))
	switch l := e.cfg.Logger; {
	case e.ctx.Err() != nil:
	case errors.Is(err, errLost):
		l.Error("switchlock: the source has lost a record; locks may have two holders for a while", "known", before.Epoch, "error", err)
	case err != nil && !errors.Is(err, ErrChanged) && !again:
		l.Warn("switchlock: the record can't be read; no lock is granted or renewed when the last read is older than a Lease", "error", err)
	case err != nil:
		l.Debug("switchlock: the record can't be read", "error", err)
	case again:
		l.Info("switchlock: the record is read again", "engine", after.To, "epoch", after.Epoch)
	case after.Epoch != before.Epoch && lacks != nil:
		l.Error("switchlock: no lock is granted", "error", lacks, "epoch", after.Epoch, "by", after.By)
	case after.Epoch != before.Epoch && after.Settled:
		l.Info("switchlock: locks are kept in one engine", "engine", after.To, "epoch", after.Epoch)
	case after.Epoch != before.Epoch && after.From == after.To:
		l.Info("switchlock: the times of the record change", "engine", after.To, "epoch", after.Epoch, "lease", after.Lease, "ttl", after.TTL)
	case after.Epoch != before.Epoch:
		l.Warn("switchlock: locks move", "from", after.From, "to", after.To, "epoch", after.Epoch, "for", after.Cross, "by", after.By)
	case after.Settled != before.Settled:
		l.Info("switchlock: locks have moved", "to", after.To, "epoch", after.Epoch)
	}
}
