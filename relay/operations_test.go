package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

type item struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// Each sale sends what is left. Of all messages of an item, each is handled once and in the order
// of the commits, also where requests come twice, callers share a transaction and an operation
// fails behind its message.
func TestMessagesOfOperations(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		const items, sales = 4, 25
		if err := db.AutoMigrate(&item{}); err != nil {
			t.Fatal(err)
		}
		if db.Name() == "sqlite" { // it has one writer at a time
			pool, err := db.DB()
			if err != nil {
				t.Fatal(err)
			}
			pool.SetMaxOpenConns(1)
		}
		for id := range items {
			if err := db.Create(&item{ID: int64(id + 1), Left: sales}).Error; err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		got := make(map[string][]int)
		cfg := relay.Config{Routes: []relay.Route{{Topic: "sold", Until: time.Hour, Handle: func(_ context.Context, m relay.Message) error {
			left, err := strconv.Atoi(string(m.Body))
			if err != nil {
				return fmt.Errorf("%w: %w", relay.ErrRejected, err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[m.Key] = append(got[m.Key], left)
			return nil
		}}}}
		start(t, db, relay.Quick(cfg))
		start(t, db, relay.Quick(cfg))

		g := guardtest.New(t, db)
		var callers sync.WaitGroup
		for n := range items * sales {
			callers.Go(func() {
				key := "item:" + strconv.Itoa(n%items+1)
				opts := []guard.Option{guard.Wait(time.Minute)}
				switch n / items % 3 {
				case 0:
					opts = append(opts, guard.Combine())
				case 1:
					opts = append(opts, guard.For(once.Request{Operation: "sell", Scope: once.Anyone, ID: strconv.Itoa(n)}))
				}
				want := error(nil)
				for range 2 {
					if err := sell(g, key, int64(n%items+1), opts); !errors.Is(err, want) {
						t.Errorf("sale %d: %v, want %v", n, err, want)
					}
					if n/items%3 != 1 {
						return
					}
					want = guard.ErrDuplicate // of the request
				}
			})
		}
		callers.Wait()
		emptied(t, db)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != items {
			t.Errorf("messages of %d items, want %d", len(got), items)
		}
		for key, lefts := range got {
			for n, left := range lefts {
				if left != sales-1-n {
					t.Errorf("%s: the %dth message says that %d are left: %v", key, n, left, lefts)
					break
				}
			}
			if len(lefts) != sales {
				t.Errorf("%s: %d messages of %d sales", key, len(lefts), sales)
			}
		}
	})
}

var errThoughtBetter = errors.New("thought better of it")

// sell sells an item, at the second try: the first one fails behind its message.
func sell(g *guardtest.Guard, key string, id int64, opts []guard.Option) error {
	var left int
	sale := func(end error) guard.Change {
		return guard.All(
			guard.SendFunc(func() (guard.Message, error) {
				return guard.Message{Topic: "sold", Body: []byte(strconv.Itoa(left))}, end
			}),
			guard.Update(&item{ID: id}, func(i *item) error {
				i.Left--
				left = i.Left
				return nil
			}),
		)
	}
	if err := g.Apply(bg, key, sale(errThoughtBetter), opts...); !errors.Is(err, errThoughtBetter) {
		return err
	}
	return g.Apply(bg, key, sale(nil), opts...)
}
