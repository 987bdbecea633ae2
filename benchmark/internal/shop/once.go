package shop

import (
	"context"
	"strconv"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// request is of one who wants something once.
func request(operation, id string) once.Request {
	return once.Request{Operation: operation, Scope: once.Anyone, ID: id}
}

// SellFor sells one of an item under its key, for a request.
func (s *Service) SellFor(ctx context.Context, item int64, id string, opts ...guard.Option) Answer {
	change := guard.Update(&Stock{ID: item}, func(s *Stock) error { return take(&s.Remaining) })
	key := BelayStock.Key(strconv.FormatInt(item, 10))
	opts = append(opts, guard.For(request("sell", id)), guard.Wait(waitLimit))
	return judge(s.belay.Guard.Apply(ctx, key, change, opts...))
}

// Once inserts an order for a request, and stores the order as its answer.
func (s *Service) Once(ctx context.Context, no string, opts ...guard.Option) Answer {
	_, err := guard.Once(ctx, s.belay.Guard, request("order", no), func(ctx context.Context, tx *gorm.DB) (Order, error) {
		o := newOrder(no)
		return *o, tx.WithContext(ctx).Create(o).Error
	}, opts...)
	return judge(err)
}
