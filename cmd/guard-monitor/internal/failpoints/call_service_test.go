//go:build failpoints

package failpoints_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/once"
)

// Charge is a call to the provider, which charges once for an id.
type Charge struct {
	ID     uint
	CallID string `gorm:"size:64"`
}

// callRole is what becomes of payments.
type callRole struct {
	Timeout, Until time.Duration
	Refuses        bool // the provider
	Mute           bool // the provider does not answer
	Unsettled      bool // Settle fails
	Hold           bool // say "stands" in the call, and wait for a line, whatever the context says
}

// paid is the request of a payment.
func paid(key string) once.Request {
	r := requested(key)
	r.Print = once.PrintOf(1, []byte(key))
	return r
}

// pay serves a payment. It goes on when another's lease has ended.
func (r *serviceRole) pay(ctx context.Context, g *guard.Guard, provider *gorm.DB) {
	opts := []guard.Option{guard.Also(r.Key, &Stock{ID: stockID}), guard.Also(r.Other, &Stock{ID: otherID}), guard.Wait(patience / 2)}
	c := r.payment(provider)
	for range r.Runs {
		a, err := c.Run(ctx, g, paid(r.Key), r.Key, opts...)
		for errors.Is(err, guard.ErrBusy) && wait.Sleep(ctx, 50*time.Millisecond, nil) == nil {
			a, err = c.Run(ctx, g, paid(r.Key), r.Key, opts...)
		}
		if err == nil {
			fmt.Println("answer", a.Value, a.Refused)
		}
		if a.Replayed {
			err = guard.ErrDuplicate // as the others end
		}
		fmt.Println("ended", outcome(err))
	}
}

// payment takes one of a stock, charges, and raises the other stock, or gives the one back.
func (r *serviceRole) payment(provider *gorm.DB) guard.Call[string, string, string] {
	change := func(id int64, by int) guard.Change {
		return guard.Update(&Stock{ID: id}, func(s *Stock) error { s.Left += by; return nil })
	}
	return guard.Call[string, string, string]{
		Name: "failpoints",
		Reserve: func(ctx context.Context, tx *gorm.DB, _ string) error {
			if err := r.stand(ctx); err != nil {
				return err
			}
			return change(stockID, -1).Run(ctx, tx)
		},
		Do: func(_ context.Context, id, _ string) (string, error) {
			if err := provider.Create(&Charge{CallID: id}).Error; err != nil {
				return "", err
			}
			fail.Point("provider/charged")
			if r.Call.Hold {
				_ = (&serviceRole{Hold: true}).stand(context.Background())
			}
			switch {
			case r.Call.Mute:
				return "", errors.New("no answer")
			case r.Call.Refuses:
				return "", guard.Refuse("declined")
			}
			return "receipt of " + id, nil
		},
		Settle: func(ctx context.Context, tx *gorm.DB, _ string, o guard.Outcome[string]) (string, error) {
			if r.Call.Unsettled {
				return "", errors.New("a fault of the program")
			}
			if o.Refused {
				return o.Value, change(stockID, 1).Run(ctx, tx)
			}
			return o.Value, change(otherID, 1).Run(ctx, tx)
		},
		Timeout: r.Call.Timeout,
		Until:   r.Call.Until,
	}
}
