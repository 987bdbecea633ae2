package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// An Engine keeps locks in etcd. It is safe for concurrent use.
type Engine interface {
	lockengine.Engine
	lockengine.Waker
	lockengine.Pinger
}

type engine struct {
	client *clientv3.Client
	kv     clientv3.KV
	cfg    Config
	leases leases
	holds  *holds.Set[written]

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // calls, watches, and deletions by timer
}

// New returns an engine that uses client. It sends no request. Close does not close client: close
// it after the engine.
func New(client *clientv3.Client, cfg Config) (Engine, error) {
	if client == nil {
		return nil, errors.New("etcdlock: client is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &engine{client: client, cfg: cfg}
	h := &history{lost: e.lostWrites}
	e.kv = clientv3.NewKVFromKVClient(traced{pb.NewKVClient(client.ActiveConnection()), h}, client)
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.leases = leases{history: h, byTTL: make(map[time.Duration]*lease)}
	e.holds = holds.New(e.deleteUnrenewed)
	return e, nil
}

// lostWrites gives all leases up. One that the backup has keeps locks that were released since, and
// would do so for as long as it is kept alive. The locks that are held move to the next lease.
func (e *engine) lostWrites() {
	e.cfg.Logger.Warn("etcdlock: etcd has lost writes, as after a restore of a backup; locks that it has lost are found at their renewal, and may have had two holders until then")
	e.leases.dropAll()
	e.holds.Change(written.lost)
}

// Close makes later calls fail, stops watches and deletions, and waits for the requests that are
// on their way. If ctx ends before they do, Close returns ctx's error. Close the Locker first:
// locks that are still held are not released, but expire.
func (e *engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.holds.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter begins something that ends with running.Done.
func (e *engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.running.Add(1)
	return nil
}

func (e *engine) place() lockengine.Place { return lockengine.Place{Node: e.cfg.Name, Slot: -1} }

// name is the key of a lock in etcd.
func (e *engine) name(key string) string { return e.cfg.Prefix + key }

// Ping implements lockengine.Pinger: it returns nil if a majority of the members answers.
func (e *engine) Ping(ctx context.Context) error {
	_, err := e.get(ctx, "")
	return err
}

// Probe implements lockengine.Pinger: it returns nil if a majority of the members can write. It deletes a
// name that does not exist, which they have to agree on.
func (e *engine) Probe(ctx context.Context, _ string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	c := newCall(ctx)
	_, err := e.kv.Delete(c.ctx, e.name("\xffprobe"))
	return c.err("probe", err)
}

// get reads a lock. It returns nil if nobody has the lock.
func (e *engine) get(ctx context.Context, key string) (*found, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	c := newCall(ctx)
	f, err := e.look(c.ctx, key)
	return f, c.err("inspect", err)
}

// look is get with the client's error.
func (e *engine) look(ctx context.Context, key string) (*found, error) {
	res, err := e.kv.Get(ctx, e.name(key))
	if err != nil {
		return nil, err
	}
	return foundIn(res.Kvs), nil
}

// Inspect implements lockengine.Engine. The TTL of the Holder is 0, because etcd does not know it.
func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	h := lockengine.Holder{Place: e.place()}
	f, err := e.get(ctx, key)
	if err != nil {
		return lockengine.Holder{}, err
	}
	if f != nil {
		h.Owner = f.owner
	}
	return h, nil
}

// checkRequest returns an error unless etcd can keep r.
func checkRequest(r lockengine.Request) error {
	if r.Owner == "" {
		return fmt.Errorf("etcdlock: %w: the owner is empty", lockengine.ErrDenied)
	}
	return nil
}
