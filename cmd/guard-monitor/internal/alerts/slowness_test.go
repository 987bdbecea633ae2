package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// order is the row that two callers write.
type order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

// slowness measures calls that the database intercepts, with the way of their events open
// and closed, by turns. It shows the ratio and asserts nothing of it: the
// machine has other work. The events must be stored as all others.
func slowness(t *testing.T, s *stage) account {
	if err := s.db.AutoMigrate(&order{}); err != nil {
		t.Fatal(err)
	}
	s.reading()
	r := s.report(s.db)
	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(s.db, locker, guard.Config{Service: "alerts", Publisher: r})
	if err != nil {
		t.Fatal(err)
	}
	const rounds, calls = 3, 150
	s.intercept(g, "warm", 20)
	var there, away []time.Duration
	for n := range rounds {
		there = append(there, s.intercept(g, fmt.Sprintf("there-%d", n), calls)...)
		s.link.become(refusing)
		away = append(away, s.intercept(g, fmt.Sprintf("away-%d", n), calls)...)
		s.link.become(sound)
		testwait.Until(t, "the way is open again", func() bool { return testmetric.Sum(t, r.Outbox, "belay_outbox_backlog") == 0 })
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := errors.Join(g.Close(ctx), locker.Close(ctx)); err != nil {
		t.Error(err)
	}
	a := s.settle(r)
	fmt.Printf("intercepted calls, p50 / p99: way open %v / %v, closed %v / %v; p99 closed is %.2f of p99 open\n",
		percentile(there, 50), percentile(there, 99), percentile(away, 50), percentile(away, 99),
		float64(percentile(away, 99))/float64(percentile(there, 99)))
	return a
}

// intercept makes calls whose row somebody writes between their begin and their
// insert, and returns how long each took.
func (s *stage) intercept(g *guard.Guard, name string, calls int) (took []time.Duration) {
	s.t.Helper()
	var mu sync.Mutex
	var callers sync.WaitGroup
	work := make(chan string)
	for range 4 {
		callers.Go(func() {
			for no := range work {
				began := time.Now()
				err := s.conflict(g, no)
				d := time.Since(began)
				var i *guard.InterceptionError
				if !errors.As(err, &i) {
					s.t.Errorf("err = %v, want an interception", err)
					continue
				}
				s.took(i.Event.ID)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	for n := range calls {
		work <- fmt.Sprintf("%s-%d", name, n)
	}
	close(work)
	callers.Wait()
	return took
}

func (s *stage) conflict(g *guard.Guard, no string) error {
	return g.Do(s.t.Context(), "order:"+no, func(_ context.Context, tx *gorm.DB) error {
		if err := s.db.Exec("INSERT INTO orders (no) VALUES (?)", no).Error; err != nil {
			return err
		}
		return tx.Create(&order{No: no}).Error
	}, guard.Protects(&order{No: no}))
}

func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)-1)*p/100].Round(10 * time.Microsecond)
}
