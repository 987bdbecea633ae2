package main

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// Order is created once per number and paid once.
type Order struct {
	ID      uint            `json:"-"`
	No      string          `json:"no" gorm:"size:64;uniqueIndex"`
	Cents   int64           `json:"cents"`
	PaidAt  *time.Time      `json:"paid_at"`
	Version dbguard.Version `json:"-"`
}

// shop does what customers ask for. It may run in many instances.
type shop struct {
	db    *gorm.DB
	guard *guard.Guard
}

// create stores a new order. The client chose its number, so that it may ask
// again when an answer got lost. The unique index on the number is the second
// layer.
func (s *shop) create(ctx context.Context, o *Order) error {
	return s.guard.Apply(ctx, "order:"+o.No, guard.Insert(o))
}

var errPaid = errors.New("order is paid")

// pay marks an order as paid. Its version is the second layer: of two payments at
// a time one is refused, and whoever comes later finds that it is paid.
func (s *shop) pay(ctx context.Context, no string) (*Order, error) {
	o, err := s.find(ctx, no)
	if err != nil {
		return nil, err
	}
	return o, s.guard.Apply(ctx, "order:"+no, guard.Update(o, func(o *Order) error {
		if o.PaidAt != nil {
			return errPaid
		}
		now := time.Now().UTC()
		o.PaidAt = &now
		return nil
	}))
}

func (s *shop) find(ctx context.Context, no string) (*Order, error) {
	var o Order
	if err := s.db.WithContext(ctx).Where("no = ?", no).Take(&o).Error; err != nil {
		return nil, err
	}
	return &o, nil
}
