package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// withOnce runs f on every database, with the tables of package once.
func withOnce(t *testing.T, f func(e *env)) {
	each(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
		f(e)
	})
}

// request is of the operation "take" by anyone.
func request(id string) once.Request {
	return once.Request{Operation: "take", Scope: once.Anyone, ID: id}
}

func printed(id string, parts ...string) once.Request {
	r := request(id)
	var all [][]byte
	for _, p := range parts {
		all = append(all, []byte(p))
	}
	r.Print = once.PrintOf(1, all...)
	return r
}

// takeOne is an update that nothing but its request keeps from being made again.
func takeOne(id int64) guard.Op {
	return guard.Update(&Stock{ID: id}, func(s *Stock) error { s.Left--; return nil }).Run
}

// never is an operation that must not run.
func (e *env) never() guard.Op {
	return func(context.Context, *gorm.DB) error {
		e.t.Error("the operation ran")
		return nil
	}
}

// started runs a call in the background, and returns when that has called rest. finish lets
// it go on, and returns its error.
func started(call func(rest func()) error) (finish func() error) {
	rests, goOn, ended := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		ended <- call(func() {
			close(rests)
			<-goOn
		})
	}()
	<-rests
	return func() error {
		close(goOn)
		return <-ended
	}
}

// wantTaken checks how often takeOne has taken effect.
func (e *env) wantTaken(times int) {
	e.t.Helper()
	if got := 9 - e.stock(1).Left; got != times {
		e.t.Errorf("taken %d times, want %d", got, times)
	}
}

// TestFor: a request takes effect once, whoever repeats it.
func TestFor(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		peer := e.Peer(t, e.db)
		wantNil(t, e.Do(bg, "sku:1", takeOne(1), guard.For(printed("a", "1"))))
		wantIs(t, peer.Do(bg, "sku:1", e.never(), guard.For(printed("a", "1"))), guard.ErrDuplicate)
		wantIs(t, peer.Do(bg, "sku:1", e.never(), guard.For(request("a"))), guard.ErrDuplicate)
		wantIs(t, peer.Do(bg, "sku:1", e.never(), guard.For(printed("a", "2"))), guard.ErrMismatch)
		wantNil(t, peer.Do(bg, "sku:1", takeOne(1), guard.For(printed("b", "1"))))
		e.wantTaken(2)
		e.wantNoEvent()
	})
}

// TestServed: whether a request is known can be asked.
func TestServed(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		want := func(ctx context.Context, r once.Request, done bool, is error) {
			t.Helper()
			if got, err := e.Served(ctx, r); got != done || !errors.Is(err, is) {
				t.Errorf("Served = %t, %v, want %t, %v", got, err, done, is)
			}
		}
		r := printed("a", "1")
		want(bg, r, false, nil)
		wantNil(t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			want(ctx, r, false, guard.ErrNested)
			return nil
		}, guard.For(r)))
		want(bg, r, true, nil)
		want(bg, request("a"), true, nil)
		want(bg, printed("a", "2"), false, guard.ErrMismatch)
		want(bg, once.Request{}, false, once.ErrRequest)
		left, leave := context.WithCancel(bg)
		leave()
		want(left, r, false, context.Canceled)
	})
}

// TestForUnderOtherKeys: a request that comes again under another key is refused all the
// same. That says nothing about the lock.
func TestForUnderOtherKeys(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		wantNil(t, e.Do(bg, "sku:1", takeOne(1), guard.For(printed("a", "1"))))
		wantIs(t, e.Do(bg, "sku:2", e.never(), guard.For(printed("a", "1"))), guard.ErrDuplicate)
		wantIs(t, e.Do(bg, "sku:2", e.never(), guard.For(printed("a", "2"))), guard.ErrMismatch)
		wantIs(t, e.Do(bg, "sku:1", e.never(), guard.For(printed("a", "1")), guard.Also("sku:2")), guard.ErrDuplicate)
		e.wantNoEvent()
	})
}

// TestForRollsBack: a request whose operation fails can be made again.
func TestForRollsBack(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		oops := errors.New("oops")
		failing := func(ctx context.Context, tx *gorm.DB) error {
			return errors.Join(takeOne(1)(ctx, tx), oops)
		}
		wantIs(t, e.Do(bg, "sku:1", failing, guard.For(request("a"))), oops)
		func() {
			defer func() { _ = recover() }()
			_ = e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error { panic(oops) }, guard.For(request("a")))
		}()
		wantNil(t, e.Do(bg, "sku:1", takeOne(1), guard.For(request("a"))))
		e.wantTaken(1)
	})
}

// TestForWhileItRuns: under another key the operation is not excluded by the lock. It does
// not run twice at once, and the repeat does not wait for long.
func TestForWhileItRuns(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		finish := started(func(rest func()) error {
			return e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
				rest()
				return takeOne(1)(ctx, tx)
			}, guard.For(request("a")))
		})
		soon, cancel := context.WithTimeout(bg, 20*time.Second) // InnoDB would wait for 50 s
		defer cancel()
		wantIs(t, e.Do(soon, "sku:2", e.never(), guard.For(request("a"))), guard.ErrBusy)
		waits := make(chan error)
		go func() { waits <- e.Do(bg, "sku:2", e.never(), guard.For(request("a")), guard.Wait(time.Minute)) }()
		wantNil(t, finish())
		wantIs(t, <-waits, guard.ErrDuplicate)
		e.wantTaken(1)
		e.wantNoEvent()
		for _, key := range []string{"sku:1", "sku:2"} {
			e.wantFree(key)
		}
	})
}

// TestForRestoresTheSession: what bounds the wait for a claim is undone before the
// operation runs, and after a refused claim.
func TestForRestoresTheSession(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		pool, err := e.db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(1)
		setting := func(tx *gorm.DB) string { return lockWait(t, tx) }
		before := setting(e.db)
		for range 2 { // the second claim is refused
			_ = e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
				if got := setting(tx); got != before {
					t.Errorf("the setting is %s in the operation, want %s", got, before)
				}
				return nil
			}, guard.For(request("a")))
			if got := setting(e.db); got != before {
				t.Errorf("the setting is %s afterwards, want %s", got, before)
			}
		}
	})
}

// lockWait returns the setting that bounds the wait for a claim.
func lockWait(t *testing.T, tx *gorm.DB) (value string) {
	query := "SELECT @@innodb_lock_wait_timeout"
	if tx.Name() == "postgres" {
		query = "SELECT current_setting('lock_timeout')"
	}
	wantNil(t, tx.Raw(query).Scan(&value).Error)
	return value
}

// TestForRestoresTheSessionAfterAPanic: so it is if a callback panics at the INSERT.
func TestForRestoresTheSessionAfterAPanic(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		pool, err := e.db.DB()
		wantNil(e.t, err)
		pool.SetMaxOpenConns(1)
		before := lockWait(e.t, e.db)
		wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:panics", func(db *gorm.DB) {
			if db.Statement.Table == "belay_once" {
				panic("a plugin")
			}
		}))
		func() {
			defer func() { _ = recover() }()
			_ = e.Do(bg, "k", e.never(), guard.For(request("a")))
		}()
		if got := lockWait(e.t, e.db); got != before {
			t.Errorf("the setting is %s afterwards, want %s", got, before)
		}
	})
}

// TestForWithoutTheLock: the claim covers nothing but the request.
func TestForWithoutTheLock(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{})
		raw := func(_ context.Context, tx *gorm.DB) error {
			return tx.Exec("UPDATE stocks SET " + tx.Statement.Quote("left") + " = 0 WHERE id = 1").Error
		}
		wantIs(t, g.Do(bg, "sku:1", raw, guard.For(request("a"))), guard.ErrUnavailable)
		wantNil(t, g.Do(bg, "sku:1", takeOne(1), guard.For(request("a"))))
		wantIs(t, g.Do(bg, "sku:1", e.never(), guard.For(request("a"))), guard.ErrDuplicate)
		e.wantTaken(1)
	})
}

// TestForAfterALostLock: a request that committed while a repeat had the lock is a lock
// failure.
func TestForAfterALostLock(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		claims, begins := e.claims()
		peer := e.Peer(t, claims)
		e.LoseAll(true)
		finish := started(func(rest func()) error {
			return e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
				rest()
				return takeOne(1)(ctx, tx)
			}, guard.For(request("a")))
		})
		second := make(chan error)
		go func() { second <- peer.Do(bg, "sku:1", e.never(), guard.For(request("a")), guard.Wait(time.Minute)) }()
		<-begins
		wantNil(t, finish())
		wantIs(t, <-second, guard.ErrIntercepted)
		e.wantTaken(1)
		for _, ev := range e.Events.All() {
			if ev.Verdict == notify.VerdictOverlap && ev.Table == "belay_once" {
				return
			}
		}
		t.Errorf("events are %+v, want an overlap at belay_once", e.Events.All())
	})
}

// TestForMistakes: what For can't mean is said.
func TestForMistakes(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		long := make([]byte, 256)
		for name, r := range map[string]once.Request{
			"no operation":      {Scope: once.Anyone, ID: "a"},
			"bad operation":     {Operation: "Take", Scope: once.Anyone, ID: "a"},
			"long operation":    {Operation: string(make([]byte, 65)), Scope: once.Anyone, ID: "a"},
			"no scope":          {Operation: "take", ID: "a"},
			"empty part":        {Operation: "take", Scope: []string{"a", ""}, ID: "a"},
			"no id":             {Operation: "take", Scope: once.Anyone},
			"long id":           {Operation: "take", Scope: once.Anyone, ID: string(long)},
			"the zero request ": {},
		} {
			if err := e.Do(bg, "k", e.never(), guard.For(r)); !errors.Is(err, once.ErrRequest) {
				t.Errorf("%s: %v, want ErrRequest", name, err)
			}
		}
		wantIs(t, e.Do(bg, "k", e.never(), guard.For(request("a")), guard.For(request("b"))), once.ErrRequest)
		wantNil(t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			wantIs(t, e.Do(ctx, "k", e.never(), guard.For(request("a"))), guard.ErrNested)
			return nil
		}))
		wantNil(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left--; return nil }),
			guard.For(request("combined")), guard.Combine(), guard.Wait(time.Second)))
		wantIs(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left--; return nil }),
			guard.For(request("combined")), guard.Combine(), guard.Wait(time.Second)), guard.ErrDuplicate)
		e.wantTaken(1)
	})
}

// TestForNames: the columns of Belay's tables have their own names, whatever those of the
// program's are made of.
func TestForNames(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		g := e.Peer(t, e.open(&gorm.Config{NamingStrategy: schema.NamingStrategy{NoLowerCase: true, TablePrefix: "t_"}}))
		nothing := func(context.Context, *gorm.DB) error { return nil }
		wantNil(e.t, g.Do(bg, "k", nothing, guard.For(request("a"))))
		wantIs(e.t, g.Do(bg, "k", e.never(), guard.For(request("a"))), guard.ErrDuplicate)
	})
}

// TestForPurged: a request that is no longer known takes effect again, also if it is
// purged while it is being refused.
func TestForPurged(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		wantNil(t, e.Do(bg, "sku:1", takeOne(1), guard.For(request("a"))))
		wantNil(t, e.db.Exec("DELETE FROM belay_once").Error)
		wantNil(t, e.Do(bg, "sku:1", takeOne(1), guard.For(request("a"))))
		e.wantTaken(2)
		e.wantNoEvent()
	})
}

// claims returns another pool on the database, and a channel that is closed when an INSERT
// begins there.
func (e *env) claims() (*gorm.DB, <-chan struct{}) {
	e.t.Helper()
	db := e.open()
	begins := make(chan struct{})
	var once sync.Once
	wantNil(e.t, db.Callback().Create().Before("gorm:create").Register("test:claims", func(*gorm.DB) {
		once.Do(func() { close(begins) })
	}))
	return db, begins
}

// TestForUnreadClaim: a claim that was made under other keys says nothing about the lock, also
// if it can't be read when it is in the way.
func TestForUnreadClaim(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		other := guardtest.New(t, e.open()) // with another pool
		pool, err := e.db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(1)
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(t, err)
		defer locker.Close(bg)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, EndTimeout: time.Second})
		wantNil(t, err)

		finish := started(func(rest func()) error {
			return other.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
				rest()
				return nil
			}, guard.For(request("a")))
		})
		second := make(chan error)
		go func() { second <- g.Do(bg, "sku:2", e.never(), guard.For(request("a")), guard.Wait(time.Minute)) }()
		testwait.Until(t, "the second caller's connection is in use", func() bool { return pool.Stats().InUse == 1 })
		taken := make(chan *sql.Conn)
		go func() { // before the claim can be read
			c, err := pool.Conn(bg)
			if err != nil {
				t.Error(err)
			}
			taken <- c
		}()
		testwait.Until(t, "another caller waits for the connection", func() bool { return pool.Stats().WaitCount > 0 })
		wantNil(t, finish())
		c := <-taken
		defer c.Close()
		if err := <-second; err == nil || errors.Is(err, guard.ErrIntercepted) {
			t.Errorf("error is %v, want that of the database", err)
		}
		e.wantNoEvent()
	})
}
