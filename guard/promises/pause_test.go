package promises_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// stage is a real Redis and a database: this process on the direct way to it,
// children by a link.
type stage struct {
	*env
	g   *guard.Guard
	dsn string // for children
	*testdb.Link
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dsn := teststack.MySQL(t)
	db := testdb.OpenMySQL(t, dsn)
	wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
	s := &stage{env: &env{t: t, db: db, Guard: guardtest.New(t, db)}}
	s.Link = testdb.NewLink(t, testdb.AddrOf(t, dsn))
	s.dsn = s.Through(t, dsn)
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: teststack.Redis(t)}, redislock.Config{})
	wantNil(t, err)
	locker, err := lock.New(engine, lock.Config{TTL: realTTL})
	wantNil(t, err)
	s.g, err = guard.New(db, locker, guard.Config{Service: "parent", Publisher: &s.Events})
	wantNil(t, err)
	t.Cleanup(func() {
		wantNil(t, s.g.Close(bg))
		wantNil(t, locker.Close(bg))
		wantNil(t, engine.Close(bg))
	})
	return s
}

// TestPausedBeforeItsWrite: the holder sleeps past its lease; the other one
// commits first. The sleeper finds out before it writes.
func TestPausedBeforeItsWrite(t *testing.T) {
	t.Run("insert", func(t *testing.T) {
		s := newStage(t)
		key := teststack.Key(t, "order")
		c := startChild(t, task{DSN: s.dsn, Key: key, No: "a"})
		c.await("begun")
		c.Signal(syscall.SIGSTOP)
		wantNil(t, s.g.Apply(bg, key, guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute)))
		c.Signal(syscall.SIGCONT)
		c.Proceed()
		c.wantResult("lost", notify.VerdictLost, notify.OutcomeRolledBack)
		s.wantNoEvent()
		if n := s.count(&Order{}); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
	t.Run("update", func(t *testing.T) {
		s := newStage(t)
		key := teststack.Key(t, "sku")
		s.create(&Stock{ID: 1, Left: 9})
		c := startChild(t, task{DSN: s.dsn, Key: key, Stock: 1})
		c.await("begun")
		c.Signal(syscall.SIGSTOP)
		wantNil(t, s.g.Apply(bg, key, guard.Update(&Stock{ID: 1}, take), guard.Wait(time.Minute)))
		c.Signal(syscall.SIGCONT)
		c.Proceed()
		c.wantResult("lost", notify.VerdictLost, notify.OutcomeRolledBack)
		s.wantNoEvent()
		if got := s.stock(1); got.Left != 8 {
			t.Errorf("left %d, want 8", got.Left)
		}
	})
}

// TestPausedAfterItsWrite: the sleeper's row is in the way of the next holder,
// who waits for it, until the sleeper wakes and must roll back.
func TestPausedAfterItsWrite(t *testing.T) {
	s := newStage(t)
	key := teststack.Key(t, "order")
	c := startChild(t, task{DSN: s.dsn, Key: key, No: "a"})
	c.await("begun")
	c.Proceed()
	c.await("written")
	c.Signal(syscall.SIGSTOP)
	begun, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- s.g.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			close(begun)
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}, guard.Wait(time.Minute))
	}()
	<-begun
	c.Signal(syscall.SIGCONT)
	c.Proceed()
	c.wantResult("lost", notify.VerdictLost, notify.OutcomeRolledBack)
	wantNil(t, <-result)
	s.wantNoEvent()
	if n := s.count(&Order{}); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// TestPausedInItsCommit: the sleeper's COMMIT is on its way when its lease ends,
// and arrives while the next holder works. Both orders end in one row, and each
// side reports what it saw.
func TestPausedInItsCommit(t *testing.T) {
	s := newStage(t)
	key := teststack.Key(t, "order")
	c := startChild(t, task{DSN: s.dsn, Key: key, No: "a"})
	c.await("begun")
	c.Proceed()
	c.await("written")
	reached, pass := s.Hold()
	defer pass()
	c.Proceed()
	<-reached
	c.Signal(syscall.SIGSTOP)
	err := s.g.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
		pass()
		testwait.Until(t, "the sleeper's commit arrives", func() bool { return s.count(&Order{}) == 1 })
		return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
	}, guard.Wait(time.Minute))
	wantIs(t, err, guard.ErrIntercepted)
	ev := s.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key)
	if ev.HolderAtConflict != notify.HolderSelf {
		t.Errorf("holder at the conflict is %q, want self", ev.HolderAtConflict)
	}
	c.Signal(syscall.SIGCONT)
	late := c.wantResult("done", notify.VerdictLost, notify.OutcomeCommitted)
	if late.Token >= ev.Token {
		t.Errorf("the sleeper's token %d is not below the next holder's, %d", late.Token, ev.Token)
	}
	if n := s.count(&Order{}); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// TestWipedWhileTwoWork: the lock is deleted in Redis, another one takes it, and
// both are at work. The database lets one through.
func TestWipedWhileTwoWork(t *testing.T) {
	s := newStage(t)
	key := teststack.Key(t, "order")
	c := startChild(t, task{DSN: s.dsn, Key: key, Unaware: true, No: "a"})
	c.await("begun")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: teststack.Redis(t)})
	defer rdb.Close()
	err := func() error {
		if n, err := rdb.Del(bg, key).Result(); err != nil || n != 1 {
			t.Fatalf("deleted %d locks: %v", n, err)
		}
		return s.g.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			c.Proceed()
			c.await("written")
			c.Proceed()
			c.await("ended")
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		})
	}()
	wantIs(t, err, guard.ErrIntercepted)
	s.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key)
	if ev := c.wantResult("done", notify.VerdictLost, notify.OutcomeCommitted); ev.Loss != notify.LossGone {
		t.Errorf("loss is %q, want gone", ev.Loss)
	}
	if n := s.count(&Order{}); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// TestLeaseEndsDuringCommit: what the database acknowledges is done; the release
// reports that the lock was gone.
func TestLeaseEndsDuringCommit(t *testing.T) {
	dsn := teststack.MySQL(t)
	direct := testdb.OpenMySQL(t, dsn)
	wantNil(t, direct.AutoMigrate(&Order{}))
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	e := &env{t: t, db: direct, Guard: guardtest.New(t, direct)}
	g := e.shortGuardOn(testdb.OpenMySQL(t, k.Through(t, dsn)))

	reached, pass := k.Hold()
	defer pass()
	lost, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- g.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			context.AfterFunc(ctx, func() { close(lost) })
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		})
	}()
	<-reached
	e.Forget("order:a")
	<-lost
	pass()
	wantNil(t, <-result)
	e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, "order:a")
	if n := e.count(&Order{}); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}
