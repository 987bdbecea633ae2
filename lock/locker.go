package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Locker acquires locks and keeps them. It is safe for concurrent use, and a
// prometheus.Collector.
type Locker struct {
	engine  Engine
	cfg     Config
	epoch   time.Time     // when the Locker was made
	step    time.Duration // by how much a test has set the wall clock
	id      string        // first part of the owner ids of this Locker
	seq     atomic.Uint64
	gates   *gates
	metrics *metrics

	closing chan struct{} // closed when Close is called
	drained chan struct{} // closed when no lease and no acquire is left after that
	stop    chan struct{} // closed when the watchdog must end
	settled chan struct{} // closed when it has nothing left to do but wait for its requests
	done    chan struct{} // closed when it and its requests have ended
	wake    chan struct{} // tells the watchdog to look at its lists

	requests sync.WaitGroup  // of the watchdog
	ctx      context.Context // of the requests
	cancel   context.CancelFunc

	mu      sync.Mutex
	closed  bool
	halted  bool // the watchdog has ended, or is about to
	active  int  // acquires that run and leases that are held
	grants  grantHeap
	wakesAt int64 // when the watchdog wakes by itself
	retired retired
	spared  map[string]int64 // until when an owner is not released when met
	sweeps  int64            // when to look at them
	news    news             // told by unlock
}

// New returns a Locker on engine. It does not ask the engine for anything. The
// caller closes it.
func New(engine Engine, cfg Config) (*Locker, error) {
	if engine == nil {
		return nil, errors.New("lock: engine is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Locker{
		engine:  engine,
		cfg:     cfg,
		epoch:   time.Now(),
		id:      uuid.NewString(),
		gates:   newGates(),
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		stop:    make(chan struct{}),
		settled: make(chan struct{}),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	l.retired.all = make(map[string]*retiree)
	l.spared = make(map[string]int64)
	l.metrics = newMetrics(cfg.Name)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.watch()
	return l, nil
}

// TTL returns how long a lock outlives its holder.
func (l *Locker) TTL() time.Duration { return l.cfg.TTL }

// Acquire takes the lock on key, waiting for it until ctx ends. Then it returns
// a *HeldError that also matches ctx.Err(). It also waits while the engine is
// out of reach, in a failover for example, but asks for no more than a ttl in a
// row: then it returns the engine's error. Each request has less than a ttl to be
// answered.
//
// The lease carries the values of ctx but not its end: it lasts until it is
// released or lost. It may be lost when it comes, if a caller of this process
// has handed it over: then the callers before may have worked without a lock.
//
// If ctx comes from a living lease of this Locker on key (Lease.Context,
// Lease.Within), another lease on the same lock is returned at once, whatever
// the options and even while Close waits for that lease; its context has the
// values of the first one's, and the last Release ends the hold. Goroutines that
// share such a context get no exclusion from each other.
func (l *Locker) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lease, error) {
	start := l.now()
	lease, err := l.acquire(ctx, key, opts)
	l.metrics.acquired(err, time.Duration(l.now()-start))
	return lease, err
}

func (l *Locker) acquire(ctx context.Context, key string, opts []AcquireOption) (*Lease, error) {
	return l.queue(ctx, key, opts, func(c claim, t turn) (*Lease, error) {
		return l.inside(key, func() (*Lease, error) { return l.wait(ctx, c, t) })
	})
}

// queue waits for the caller's turn. Unless a lease comes with it, or he has one
// already, he is then inside key's gate, and get has to get it.
func (l *Locker) queue(ctx context.Context, key string, opts []AcquireOption, get func(claim, turn) (*Lease, error)) (*Lease, error) {
	c, err := l.claim(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if lease := l.nested(ctx, key); lease != nil {
		return lease, nil
	}
	if !l.begin() {
		return nil, ErrClosed
	}
	t, ok := l.gates.enter(ctx, c, l.closing)
	if !ok {
		return nil, l.turnedAway(ctx, key)
	}
	if t.grant != nil {
		return l.unlessOver(ctx, l.adopt(ctx, t.grant))
	}
	return get(c, t)
}

// TryAcquire takes the lock on key, or returns a *HeldError at once. When a
// caller of this Locker has the key, or is about to ask for it, the engine is
// not asked. Each request has less than a ttl to be answered, as in Acquire. There
// is a second one if a lock that this Locker left behind had to be released first,
// which takes up to Config.RequestTimeout. As to leases in ctx see Acquire.
func (l *Locker) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lease, error) {
	start := l.now()
	lease, err := l.tryAcquire(ctx, key, opts)
	l.metrics.acquired(err, time.Duration(l.now()-start))
	return lease, err
}

func (l *Locker) tryAcquire(ctx context.Context, key string, opts []AcquireOption) (*Lease, error) {
	return l.try(ctx, key, opts, func(c claim) (*Lease, error) {
		return l.inside(key, func() (*Lease, error) { return l.ask(ctx, c) })
	})
}

// try is queue for a caller who does not wait for his turn.
func (l *Locker) try(ctx context.Context, key string, opts []AcquireOption, get func(claim) (*Lease, error)) (*Lease, error) {
	c, err := l.claim(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if lease := l.nested(ctx, key); lease != nil {
		return lease, nil
	}
	if !l.begin() {
		return nil, ErrClosed
	}
	if inside, ok := l.gates.tryEnter(key); !ok {
		l.finish()
		return nil, &HeldError{Key: key, Holder: inside.holder()}
	}
	return get(c)
}

// inside runs get for the caller inside key's gate, who leaves it again unless
// he gets a lease, even if the engine panics.
func (l *Locker) inside(key string, get func() (*Lease, error)) (lease *Lease, err error) {
	defer func() {
		if lease == nil {
			l.gates.leave(key, false)
			l.finish()
		}
	}()
	if lease, err = get(); err != nil {
		return nil, err
	}
	l.gates.settle(key, lease.grant)
	l.keep(lease.grant)
	return lease, nil
}

// unlessOver gives a lease that was handed over on if its caller's ctx ended
// while it waited.
func (l *Locker) unlessOver(ctx context.Context, lease *Lease) (*Lease, error) {
	end, alive := endOf(ctx), lease.Err() == nil
	if end == nil || !alive { // of a loss the caller is told
		return lease, nil
	}
	if err := lease.Release(ctx); err != nil {
		l.cfg.Logger.Debug("release lock that nobody wants any more", "key", lease.Key(), "error", err)
	}
	return nil, &HeldError{Key: lease.Key(), Holder: lease.grant.holder(), Err: end}
}

// ask asks the engine once, and once more if a lock of this Locker that nobody
// uses was in the way.
func (l *Locker) ask(ctx context.Context, c claim) (*Lease, error) {
	lease, err := l.askOnce(ctx, c)
	held, ok := errors.AsType[*HeldError](err)
	if ok && l.exorcise(ctx, Hold{Key: c.key, Owner: held.Holder.Owner}) {
		return l.askOnce(ctx, c)
	}
	return lease, err
}

func (l *Locker) askOnce(ctx context.Context, c claim) (*Lease, error) {
	key := c.key
	if err := endOf(ctx); err != nil { // nothing is sent that would have to be retired
		return nil, fmt.Errorf("acquire lock %q: %w", key, err)
	}
	h := Hold{Key: key, Owner: l.newOwner()}
	sent := l.now()
	answer, err := l.request(ctx, c, h)
	if held, ok := errors.AsType[*HeldError](err); ok {
		return nil, held
	}
	if errors.Is(err, ErrMarked) {
		if errors.Is(err, ErrNoAnswer) {
			l.retire(h, false)
		}
		return nil, fmt.Errorf("acquire lock %q: %w", key, ErrMarked)
	}
	if err != nil {
		if mayHold(err) {
			l.retire(h, true)
		}
		if end := endOf(ctx); end != nil && !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", end, err)
		}
		return nil, fmt.Errorf("acquire lock %q: %w", key, err)
	}

	g := &grant{locker: l, hold: h, place: answer.Place, token: answer.Token, granted: l.now(), alone: c.unlessMarked}
	g.renewed(sent)
	if g.granted >= g.deadline.Load() {
		l.retire(h, false)
		return nil, fmt.Errorf("acquire lock: %w", g.lost(ErrLost, "the answer took longer than the ttl"))
	}
	return g.takeBy(ctx, sent), nil
}

// endOf is ctx.Err, but does not miss a deadline that has passed while ctx does
// not know it yet: a socket with the same deadline may be the first to notice.
func endOf(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// Ping reports whether the engine answers, if it can tell: engines may have a
// method Ping(context.Context) error.
func (l *Locker) Ping(ctx context.Context) error {
	p, ok := l.engine.(interface{ Ping(context.Context) error })
	if !ok {
		return nil
	}
	return p.Ping(ctx)
}

// begin counts an acquire in, unless the Locker is closed.
func (l *Locker) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.active++
	return true
}

// finish counts an acquire that got nothing, or a lease that has ended, out.
func (l *Locker) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finishLocked()
}

func (l *Locker) finishLocked() {
	l.active--
	if l.closed && l.active == 0 {
		close(l.drained)
	}
}

// newOwner returns an owner id in Redisson's form, uuid:n.
func (l *Locker) newOwner() string {
	return l.id + ":" + strconv.FormatUint(l.seq.Add(1), 10)
}
