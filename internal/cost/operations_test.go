package cost_test

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// An operation is something that a caller does. no is another one each time.
type operation struct {
	name string
	do   func(ctx context.Context, s *service, no string) error
}

// operations are those with a ceiling. The stock 1 must be there.
var operations = []operation{
	{"Do, an INSERT", func(ctx context.Context, s *service, no string) error {
		return s.guard.Do(ctx, "cost:do", func(_ context.Context, tx *gorm.DB) error { return tx.Create(&Order{No: no}).Error })
	}},
	{"Apply(Insert)", func(ctx context.Context, s *service, no string) error {
		return s.guard.Apply(ctx, "cost:insert", guard.Insert(&Order{No: no}))
	}},
	{"Apply(Update)", func(ctx context.Context, s *service, _ string) error {
		return s.guard.Apply(ctx, "cost:stock", guard.Update(&Stock{ID: 1}, take))
	}},
	{"Apply(Update), Combine", func(ctx context.Context, s *service, _ string) error {
		return s.guard.Apply(ctx, "cost:stock", guard.Update(&Stock{ID: 1}, take), guard.Combine())
	}},
	{"Apply(Insert), For", func(ctx context.Context, s *service, no string) error {
		return s.guard.Apply(ctx, "cost:for", guard.Insert(&Order{No: no}), guard.For(requestOf(no)))
	}},
	{"Apply(Insert and Send)", func(ctx context.Context, s *service, no string) error {
		m := guard.Message{Topic: "order.placed", Body: []byte(no)}
		return s.guard.Apply(ctx, "cost:send", guard.All(guard.Insert(&Order{No: no}), guard.Send(m)))
	}},
	{"Once, an INSERT", func(ctx context.Context, s *service, no string) error {
		_, err := guard.Once(ctx, s.guard, requestOf(no), func(_ context.Context, tx *gorm.DB) (string, error) {
			return no, tx.Create(&Order{No: no}).Error
		})
		return err
	}},
	{"Call, an INSERT in Settle", func(ctx context.Context, s *service, no string) error {
		_, err := call.Run(ctx, s.guard, requestOf(no), no)
		return err
	}},
}

// call reserves nothing, and places an order when another service has answered.
var call = guard.Call[string, string, string]{
	Name:    "cost",
	Reserve: func(context.Context, *gorm.DB, string) error { return nil },
	Do:      func(_ context.Context, _ string, no string) (string, error) { return no, nil },
	Settle: func(_ context.Context, tx *gorm.DB, no string, _ guard.Outcome[string]) (string, error) {
		return no, tx.Create(&Order{No: no}).Error
	},
	Timeout: 20 * time.Second,
	Until:   time.Hour,
}

func take(s *Stock) error {
	if s.Left--; s.Left < 0 {
		return fmt.Errorf("stock %d is empty", s.ID)
	}
	return nil
}

func requestOf(no string) once.Request {
	return once.Request{Operation: "cost", Scope: []string{"customer"}, ID: no, Print: once.PrintOf(1, []byte(no))}
}
