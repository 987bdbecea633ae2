package main

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// Order is one sale. Its unique number is the second layer of the insert: of
// two requests with one number, the database takes one.
type Order struct {
	ID int64
	No string `gorm:"uniqueIndex;not null"`
}

// Stock is what there is of an item. Its version is the second layer of the
// update: a count that somebody else has changed is not overwritten.
type Stock struct {
	ID      int64
	Left    int `gorm:"not null"`
	Version dbguard.Version
}

const (
	itemID  = 7
	itemKey = "sku:7" // everybody who sells the item takes this lock
)

var errSoldOut = errors.New("sold out")

// buy sells one item under the order number no, once, however often it is called. It
// fails fast: while another sale is on, it returns guard.ErrBusy.
func (i *instance) buy(ctx context.Context, no string) error {
	return i.Guard.Do(ctx, itemKey, order(no), guard.Protects(&Order{No: no}, &Stock{ID: itemID}))
}

// order is the business transaction. The order row makes the request harmless
// when it comes again; the count alone would just go down twice.
func order(no string) guard.Op {
	return func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Order{No: no}).Error; err != nil {
			return err
		}
		var stock Stock
		if err := tx.Take(&stock, itemID).Error; err != nil {
			return err
		}
		if stock.Left == 0 {
			return errSoldOut
		}
		return tx.Model(&stock).Update("left", stock.Left-1).Error
	}
}
