// Package redsync_test moves a service from redsync to Belay while its writers go on.
package redsync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Wallet struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

var ErrTooLittle = errors.New("too little in the wallet")

// before has a mutex of redsync around a transaction.
func before(ctx context.Context, rs *redsync.Redsync, db *gorm.DB, id, cents int64) error {
	mutex := rs.NewMutex(fmt.Sprintf("wallet:%d", id), redsync.WithExpiry(30*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() { _, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) }()
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return withdraw(tx, id, cents) })
}

// during has both locks: first the mutex, then that of Belay, under another name.
func during(ctx context.Context, rs *redsync.Redsync, g *guard.Guard, id, cents int64) error {
	mutex := rs.NewMutex(fmt.Sprintf("wallet:%d", id), redsync.WithExpiry(30*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() { _, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second) // ends before the mutex does
	defer cancel()
	return after(ctx, g, id, cents)
}

// after has the lock of Belay only.
func after(ctx context.Context, g *guard.Guard, id, cents int64) error {
	return g.Do(ctx, fmt.Sprintf("belay:wallet:%d", id), func(ctx context.Context, tx *gorm.DB) error {
		return withdraw(tx, id, cents)
	}, guard.Protects(&Wallet{ID: id}), guard.Wait(3*time.Second))
}

// withdraw stays as it is.
func withdraw(tx *gorm.DB, id, cents int64) error {
	var w Wallet
	if err := tx.Take(&w, id).Error; err != nil {
		return err
	}
	if w.Cents < cents {
		return ErrTooLittle
	}
	return tx.Model(&w).Update("cents", w.Cents-cents).Error
}

// A writer withdraws in one of the three ways.
type writer func(ctx context.Context, cents int64) error

// A stage has a wallet of 1000 cents, and writers of each release.
type stage struct {
	db                    *gorm.DB
	before, during, after writer
}

func newStage(t *testing.T) stage {
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	wallet := Wallet{ID: rand.Int64N(1 << 50), Cents: 1000} // whose locks no other test has
	testdb.WantNil(t, errors.Join(db.AutoMigrate(&Wallet{}), db.Create(&wallet).Error))
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: teststack.Redis(t)})
	rs := redsync.New(goredis.NewPool(client))
	b, err := belay.Open(t.Context(), belay.Config{Service: "shop", DB: db, Redis: "redis+cluster://" + strings.Join(teststack.Redis(t), ",")})
	testdb.WantNil(t, err)
	t.Cleanup(func() { testdb.WantNil(t, errors.Join(b.Close(context.Background()), client.Close())) })
	testdb.WantNil(t, db.Callback().Query().After("gorm:query").Register("test:pause", pause))
	return stage{
		db:     db,
		before: func(ctx context.Context, cents int64) error { return before(ctx, rs, db, wallet.ID, cents) },
		during: func(ctx context.Context, cents int64) error { return during(ctx, rs, b.Guard, wallet.ID, cents) },
		after:  func(ctx context.Context, cents int64) error { return after(ctx, b.Guard, wallet.ID, cents) },
	}
}

func (s stage) wantLeft(t *testing.T, cents int64) {
	t.Helper()
	var w Wallet
	if err := s.db.Take(&w).Error; err != nil || w.Cents != cents {
		t.Errorf("%d cents are left, %v, want %d", w.Cents, err, cents)
	}
}

// pausing is the key of a *pauser in a context.
type pausing struct{}

// A pauser stops a writer once, when it has read the wallet. What is sent lets it go on.
type pauser struct {
	once   sync.Once
	paused chan func()
}

func pause(db *gorm.DB) {
	if p, ok := db.Statement.Context.Value(pausing{}).(*pauser); ok {
		p.once.Do(func() {
			goOn := make(chan struct{})
			p.paused <- func() { close(goOn) }
			<-goOn
		})
	}
}

// TestExclusion: a release excludes the one before it, and not the one before that.
func TestExclusion(t *testing.T) {
	s := newStage(t)
	for name, tt := range map[string]struct {
		holder, other writer
		excluded      bool
	}{
		"before and during": {s.before, s.during, true},
		"during and before": {s.during, s.before, true},
		"during and after":  {s.during, s.after, true},
		"after and during":  {s.after, s.during, true},
		"before and after":  {s.before, s.after, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, done := &pauser{paused: make(chan func())}, make(chan error)
			go func() { done <- tt.holder(context.WithValue(t.Context(), pausing{}, p), 0) }()
			goOn := <-p.paused
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.excluded {
				time.AfterFunc(500*time.Millisecond, cancel)
			}
			if err := tt.other(ctx, 0); (err != nil) != tt.excluded {
				t.Errorf("the other writer got %v while one was at work", err)
			}
			goOn()
			if err := <-done; err != nil && tt.excluded {
				t.Error(err)
			}
		})
	}
}

// isBusy reports whether a writer has given up its wait for a lock, as on a slow machine.
func isBusy(err error) bool {
	_, taken := errors.AsType[*redsync.ErrTaken](err)
	return taken || errors.Is(err, redsync.ErrFailed) || errors.Is(err, guard.ErrBusy)
}

// TestRollout: writers of two releases work together at each step, and no cent is lost.
func TestRollout(t *testing.T) {
	s := newStage(t)
	left := int64(1000)
	for _, together := range [][]writer{{s.before, s.during}, {s.during}, {s.during, s.after}, {s.after}} {
		var writers sync.WaitGroup
		for i := range 8 {
			left -= 10
			writers.Go(func() {
				err := together[i%len(together)](t.Context(), 10)
				for isBusy(err) {
					err = together[i%len(together)](t.Context(), 10)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		s.wantLeft(t, left)
	}
}
