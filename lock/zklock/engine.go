package zklock

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// An Engine keeps locks in ZooKeeper. Its
// locks belong to its session, so no other engine can renew them. It is safe for concurrent use.
type Engine interface {
	lockengine.Engine
	lockengine.Waker
	lockengine.Pinger
}

type engine struct {
	cfg     Config
	client  *client
	holds   *holds.Set[*session]
	watches watches

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // calls, and deletions by timer
}

// New returns an engine, and starts to connect to one of the servers in the background. It returns
// an error only if cfg is wrong.
func New(cfg Config) (Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.holds = holds.New(e.deleteUnrenewed)
	e.watches = watches{byNode: make(map[string]*watch)}
	e.client = &client{cfg: cfg, event: e.fired, resumed: e.deleteStrays, connected: e.armAll, expired: e.expired}
	e.client.start()
	return e, nil
}

// Close makes later calls fail, ends the session, and waits for the requests that are on their way.
// If ctx ends before they do, Close returns ctx's error. Close the Locker first: if locks are still
// held, Close does not end the session but leaves it to expire, so that no lock ends before its ttl.
func (e *engine) Close(ctx context.Context) error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.stop()
	held := e.holds.Close()
	err := e.client.close(ctx, held == 0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.running.Wait()
	}()
	select {
	case <-ended:
		return err
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

// expired removes the locks of a session that has expired, and logs how many these were.
func (e *engine) expired(s *session) {
	if lost := e.holds.RemoveAll(func(of *session) bool { return of == s }); lost > 0 {
		e.cfg.Logger.Warn("zklock: the session has expired, so its locks are lost", "locks", lost, "timeout", s.granted())
	}
}

func (e *engine) place(key string) lockengine.Place {
	return lockengine.Place{Node: e.cfg.Name, Slot: -1, Entry: e.lockNode(key)}
}

// do sends a request on a connection and waits for its answer.
func do(ctx context.Context, conn *conn, what string, kind int32, body []byte) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, notSent(what, err)
	}
	answers := make(chan answer, 1)
	if err := conn.send(kind, body, func(a answer) { answers <- a }); err != nil {
		return answer{}, notSent(what, err)
	}
	select {
	case a := <-answers:
		if a.lost != nil {
			return a, noAnswer(what, a.lost)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, noAnswer(what, ctx.Err())
	}
}

// doMulti executes all parts or none. It returns the results, and the index of the first part that
// was rejected, or -1 if all were executed.
func doMulti(ctx context.Context, conn *conn, what string, parts ...part) ([]result, int, error) {
	a, err := do(ctx, conn, what, opMulti, multi(parts...))
	if err != nil {
		return nil, 0, err
	}
	if a.code != 0 && len(a.body) == 0 {
		return nil, 0, rejected(what, a.code)
	}
	results, err := multiResults(a.body)
	if err != nil || len(results) != len(parts) {
		return nil, 0, noAnswer(what, errShort)
	}
	i := failed(results)
	if i >= 0 {
		switch c := results[i].err; c {
		case errNoNode, errNodeExists:
		default:
			return nil, 0, rejected(what, c)
		}
	}
	return results, i, nil
}

// A found lock is the content of a lock's node.
type found struct {
	owner string
	stat
}

// get reads the lock of key. It returns nil if nobody has the lock.
func (e *engine) get(ctx context.Context, conn *conn, key string) (*found, error) {
	a, err := do(ctx, conn, "read", opGetData, read(e.lockNode(key), false))
	switch {
	case err != nil:
		return nil, err
	case a.code == errNoNode:
		return nil, nil
	case a.code != 0:
		return nil, rejected("read", a.code)
	}
	d := decoder{b: a.body}
	f := &found{owner: d.text(), stat: d.stat()}
	return f, d.err
}

// Inspect implements lockengine.Engine. The TTL of the Holder is 0, because ZooKeeper does not know it.
func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	if err := e.enter(); err != nil {
		return lockengine.Holder{}, err
	}
	defer e.running.Done()
	conn, err := e.client.ready(ctx)
	if err != nil {
		return lockengine.Holder{}, notSent("inspect", err)
	}
	// The server may be behind the leader. After a sync its next answer is not.
	if err := conn.send(opSync, syncOf(e.cfg.Root), func(answer) {}); err != nil {
		return lockengine.Holder{}, notSent("inspect", err)
	}
	f, err := e.get(ctx, conn, key)
	if err != nil {
		return lockengine.Holder{}, err
	}
	h := lockengine.Holder{Place: e.place(key)}
	if f != nil {
		h.Owner = f.owner
	}
	return h, nil
}

// Ping implements lockengine.Pinger: it returns nil if a majority of the servers answers.
func (e *engine) Ping(ctx context.Context) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	conn, err := e.client.ready(ctx)
	if err != nil {
		return notSent("ping", err)
	}
	_, _, err = doMulti(ctx, conn, "ping", check("/"))
	return err
}

// Probe implements lockengine.Pinger: it returns nil if a lock on key could be granted. One request
// creates and deletes a node beside that of the lock.
func (e *engine) Probe(ctx context.Context, key string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	conn, err := e.client.ready(ctx)
	if err != nil {
		return notSent("probe", err)
	}
	node := e.folder(key) + "/%p-" + rand.Text()
	for tries := 0; ; tries++ {
		results, i, err := doMulti(ctx, conn, "probe", createEphemeral(node, ""), remove(node))
		switch {
		case err != nil || i < 0:
			return err
		case tries > 0 || results[i].err != errNoNode:
			return rejected("probe", results[i].err)
		}
		if err := e.createFolder(ctx, conn, key); err != nil {
			return err
		}
	}
}

// checkRequest returns an error unless ZooKeeper can keep r.
func checkRequest(r lockengine.Request) error {
	if r.Owner == "" {
		return fmt.Errorf("zklock: %w: the owner is empty", lockengine.ErrDenied)
	}
	return nil
}

// A ttlError is returned for a ttl that is too long for the session timeout.
type ttlError struct{ ttl, session, wanted time.Duration }

func (e *ttlError) Error() string {
	msg := fmt.Sprintf("zklock: a ttl of %v is more than three quarters of the session timeout of %v", e.ttl, e.session)
	if e.session < e.wanted {
		return msg + fmt.Sprintf(": the servers allow no more, although Config.SessionTimeout is %v: raise maxSessionTimeout in zoo.cfg, or use a shorter ttl", e.wanted)
	}
	return msg + ": raise Config.SessionTimeout"
}

func (e *ttlError) Unwrap() error { return lockengine.ErrDenied }
