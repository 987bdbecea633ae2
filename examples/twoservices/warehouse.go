package twoservices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/inbox/amqpinbox"
	"github.com/belaygo/belay/once"
)

// Shelf is where the warehouse keeps an item.
type Shelf struct {
	ID      int64 // the item
	Shipped int64
	Version dbguard.Version
}

// Shipment is a row of the warehouse's database. No index keeps a sale from being shipped twice: the
// inbox does.
type Shipment struct {
	ID    int64
	No    string `gorm:"size:64"` // of the sale
	Item  int64
	Sale  int64 // the item's sale
	Place int64 // counts the shipments of the item, from 1
}

// OpenWarehouse opens a process of the warehouse. cfg names its database and its locks.
func OpenWarehouse(ctx context.Context, cfg belay.Config) (*belay.Belay, error) {
	cfg.Service = "warehouse"
	cfg.Once = new(once.PurgerConfig)
	return belay.Open(ctx, cfg)
}

// Declare declares the queue of the shop's messages, and that of its dead letters. The queue has a
// single active consumer: while one process has the messages, the others stand by.
func Declare(ch *amqp.Channel) error {
	const dead = topic + ".dead"
	if _, err := ch.QueueDeclare(dead, true, false, false, false, nil); err != nil {
		return err
	}
	_, err := ch.QueueDeclare(topic, true, false, false, false, amqp.Table{
		"x-queue-type":              "quorum",
		"x-single-active-consumer":  true,
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": dead,
	})
	return err
}

// Serve ships the sales of the queue, which exists, until ctx ends, or until the connection to the
// broker at url is lost: then call it again.
func Serve(ctx context.Context, g *guard.Guard, url string) error {
	box, err := inbox.New(g, inbox.Config{Consumer: "warehouse"})
	if err != nil {
		return err
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close() // what is not acknowledged goes back to the queue, in its order
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(16, 0, false); err != nil {
		return err
	}
	// Not with ctx: a consumer that is cancelled may make way for the next while it has messages.
	deliveries, err := ch.Consume(topic, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	return amqpinbox.Serve(ctx, deliveries, amqpinbox.Config{
		Inbox:   box,
		Handle:  func(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error { return ship(ctx, tx, d.Body) },
		Options: func(d amqp.Delivery) []guard.Option { return shelfOf(d.Body) },
	})
}

// ship ships a sale.
func ship(ctx context.Context, tx *gorm.DB, body []byte) error {
	var sale Sale
	if err := json.Unmarshal(body, &sale); err != nil {
		return inbox.Rejected(err) // no retry can cure it
	}
	s := Shipment{No: sale.No, Item: sale.Item, Sale: sale.Number}
	err := guard.Update(&Shelf{ID: sale.Item}, func(shelf *Shelf) error {
		shelf.Shipped++
		s.Place = shelf.Shipped
		return nil
	}).Run(ctx, tx)
	if errors.Is(err, gorm.ErrRecordNotFound) { // no retry can cure it, either
		return inbox.Rejected(err)
	}
	if err != nil {
		return err
	}
	return tx.Create(&s).Error
}

// shelfOf holds the key of the shelf that a sale changes.
func shelfOf(body []byte) []guard.Option {
	var sale Sale
	if json.Unmarshal(body, &sale) != nil {
		return nil
	}
	return []guard.Option{guard.Also(fmt.Sprintf("shelf:%d", sale.Item), &Shelf{ID: sale.Item})}
}
