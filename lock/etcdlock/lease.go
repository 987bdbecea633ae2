package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/lock/lockengine"
)

// leases are the etcd leases of an engine: one for each ttl.
type leases struct {
	history *history

	mu    sync.Mutex
	byTTL map[time.Duration]*lease
}

// A lease is an etcd lease that all locks of one ttl are bound to. It lasts a third longer than the
// ttl, so that not every acquire has to keep it alive.
type lease struct {
	ttl     time.Duration
	history *history

	turn chan struct{} // is full while a call sends requests about the lease

	mu    sync.Mutex
	id    clientv3.LeaseID
	term  uint64           // in which it was granted, or an earlier one
	asked clientv3.LeaseID // that etcd may have granted without an answer
	alive time.Time        // when the last request was sent that kept it alive
	stray bool             // a lock may be bound to it that nobody renews
	left  time.Time        // when a lease was last given up for a stray lock
}

// leaveEvery is how often a lease is given up for stray locks at most: each stays in etcd until it
// expires, and all locks that are held move to the next one.
const leaveEvery = time.Second

// of returns the lease for locks of a ttl.
func (l *leases) of(ttl time.Duration) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.byTTL[ttl]
	if le == nil {
		le = &lease{ttl: ttl, history: l.history, turn: make(chan struct{}, 1)}
		l.byTTL[ttl] = le
	}
	return le
}

// seconds returns how long the lease lasts, in seconds.
func (l *lease) seconds() int64 {
	return max(2, int64((l.ttl+l.ttl/3+time.Second-1)/time.Second))
}

// keep returns a lease that outlives a lock which is acquired or renewed now. If the lease was not
// kept alive within age, keep does that now. If there is no lease, it gets one from etcd.
func (l *lease) keep(ctx context.Context, client *clientv3.Client, age time.Duration) (clientv3.LeaseID, error) {
	if err := l.take(ctx); err != nil {
		return 0, err
	}
	defer l.give()
	id, alive := l.current()
	if id != clientv3.NoLease && time.Since(alive) < age {
		return id, nil
	}
	bounded, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	id, err := l.ask(bounded, client, id)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("etcdlock: %w: no answer about the lease within %v", lockengine.ErrNotSent, l.patience())
	}
	return id, err
}

// patience is how long an answer about the lease may take. Its caller may have more time, as
// one that acquires has, but renewals wait for their turn.
func (l *lease) patience() time.Duration { return min(time.Second, l.ttl/2) }

// ask has the lease kept alive, or granted if there is none. A lease that turns out to be of an
// earlier term is left: see isCurrent.
func (l *lease) ask(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) (clientv3.LeaseID, error) {
	before, sent := l.history.now(), time.Now()
	if id != clientv3.NoLease {
		res, err := client.KeepAliveOnce(ctx, id)
		if err == nil {
			l.history.noteTerm(before, res.ResponseHeader)
			if l.isCurrent(id) {
				l.kept(id, sent)
				return id, nil
			}
		} else if !isLeaseLost(err) {
			return 0, unsent("keep the lease alive", err)
		}
		before, sent = l.history.now(), time.Now()
	}
	id = l.next()
	answer, err := l.grant(ctx, client, id)
	if err != nil {
		if isLeaseLost(err) {
			l.replace(clientv3.NoLease, 0, sent) // it was granted, and has expired
		}
		return 0, unsent("get a lease", err)
	}
	l.history.noteTerm(before, answer)
	term := before.term // that of the answer may be later than the one in which the lease was granted
	if term == 0 {
		term = answer.GetRaftTerm()
	}
	l.replace(id, term, sent)
	return id, nil
}

// grant gets a lease from etcd. The id is the engine's choice: a request that gets no answer may
// have been executed, and another one for the same id leaves no second lease.
func (l *lease) grant(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) (*pb.ResponseHeader, error) {
	res, err := clientv3.RetryLeaseClient(client).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(id), TTL: l.seconds()})
	if is(err, rpctypes.ErrLeaseExist) {
		kept, err := client.KeepAliveOnce(ctx, id)
		if err != nil {
			return nil, err
		}
		return kept.ResponseHeader, nil
	}
	if end := ctx.Err(); err != nil && end != nil {
		err = fmt.Errorf("%w: %w", end, err)
	}
	return res.GetHeader(), err
}

// isCurrent reports whether locks may be bound to a lease: it is the engine's, and was granted in the
// present term. A leader of etcd that stood still, and was deposed meanwhile, may go on for a
// moment: it ends leases that have expired by its clock, though the next leader keeps them alive.
// It knows no lease that was granted after its term.
func (l *lease) isCurrent(id clientv3.LeaseID) bool {
	term := l.history.now().term
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id == id && l.term >= term
}

// next returns the id to ask for: that of a request which got no answer, or a new one.
func (l *lease) next() clientv3.LeaseID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == clientv3.NoLease {
		l.asked = clientv3.LeaseID(rand.Int64N(math.MaxInt64-1) + 1)
	}
	return l.asked
}

// current returns the lease, if there is one that may be kept alive.
func (l *lease) current() (clientv3.LeaseID, time.Time) {
	term := l.history.now().term
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term < term {
		l.id = clientv3.NoLease
	}
	if l.stray && time.Since(l.left) >= leaveEvery {
		l.id, l.stray, l.left = clientv3.NoLease, false, time.Now()
	}
	return l.id, l.alive
}

// kept notes that the lease was kept alive, unless it was dropped meanwhile.
func (l *lease) kept(id clientv3.LeaseID, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.alive = sent
	}
}

// replace notes the lease that etcd has granted, or that it has none any more.
func (l *lease) replace(id clientv3.LeaseID, term uint64, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.term, l.asked, l.alive, l.stray = id, term, clientv3.NoLease, sent, false
}

func (l *lease) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unsent("wait for the lease", ctx.Err())
	}
}

func (l *lease) give() { <-l.turn }

// strays notes that a request about a lock got no answer and may be executed later, so that a lock
// may be bound to the lease that nobody renews. It ends with the lease: later acquires use another
// one, unless the last was given up less than a second ago, and locks that are bound to this one
// move when they are renewed. strays does not wait for a turn, which may last as long as another caller's
// context.
func (l *lease) strays(id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.stray = true
	}
}

// drop makes later acquires use another lease, as this one is lost.
func (l *lease) drop(id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.id = clientv3.NoLease
	}
}

// dropAll drops all leases.
func (l *leases) dropAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, le := range l.byTTL {
		le.mu.Lock()
		le.id = clientv3.NoLease
		le.mu.Unlock()
	}
}

// unsent returns the error of a request that comes before the one about the lock, which was then
// not sent.
func unsent(what string, err error) error {
	kind := classify(err)
	switch {
	case is(err, rpctypes.ErrNoSpace):
		kind = lockengine.ErrRefused
	case errors.Is(kind, lockengine.ErrNoAnswer):
		kind = lockengine.ErrNotSent
	}
	return fmt.Errorf("etcdlock: %s: %w: %w", what, kind, err)
}
