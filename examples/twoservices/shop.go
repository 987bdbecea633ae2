// Package twoservices has two services with a database each. The shop sells, and sends a message
// that leaves with the sale's commit. The warehouse ships each sale once, in the order in which
// its item was sold, whichever process, database or broker fails on the way.
package twoservices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// Item is what the shop sells.
type Item struct {
	ID      int64
	Sold    int64
	Version dbguard.Version
}

// Sale is a row of the shop's database.
type Sale struct {
	No     string `gorm:"primaryKey;size:64" json:"no"` // the customer's number of the request
	Item   int64  `json:"item"`
	Number int64  `json:"number"` // counts the sales of the item, from 1
}

// topic is what the shop's messages are about.
const topic = "sale.made"

// OpenShop opens a process of the shop. cfg names its database and its locks; broker takes the
// messages, as relay/amqprelay does.
func OpenShop(ctx context.Context, cfg belay.Config, broker relay.Publisher) (*belay.Belay, error) {
	cfg.Service = "shop"
	cfg.Once = new(once.PurgerConfig)
	cfg.Messages = []relay.Route{{Topic: topic, To: broker}}
	return belay.Open(ctx, cfg)
}

// Sell sells an item, once for each number. A repeat returns nil. The message has the key of the
// operation, so the messages of an item leave in the order of its sales.
func Sell(ctx context.Context, g *guard.Guard, no string, item int64) error {
	stock, sale := Item{ID: item}, Sale{No: no, Item: item}
	request := once.Request{Operation: "sell", Scope: once.Anyone, ID: no}
	err := g.Apply(ctx, fmt.Sprintf("item:%d", item), guard.All(
		guard.Update(&stock, func(i *Item) error {
			i.Sold++
			sale.Number = i.Sold
			return nil
		}),
		guard.Insert(&sale),
		guard.SendFunc(func() (guard.Message, error) {
			body, err := json.Marshal(sale)
			return guard.Message{Topic: topic, Body: body}, err
		}),
	), guard.For(request), guard.Wait(3*time.Second))
	if errors.Is(err, guard.ErrDuplicate) {
		return nil
	}
	return err
}
