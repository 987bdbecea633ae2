package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/examples/twoservices"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/once"
)

// sellOutside sells, and then sends the message in another transaction.
func sellOutside(ctx context.Context, g *guard.Guard, no string, item int64) error {
	key, sale := fmt.Sprintf("item:%d", item), twoservices.Sale{No: no, Item: item}
	err := g.Apply(ctx, key, guard.All(
		guard.Update(&twoservices.Item{ID: item}, func(i *twoservices.Item) error {
			i.Sold++
			sale.Number = i.Sold
			return nil
		}),
		guard.Insert(&sale),
	), guard.For(once.Request{Operation: "sell", Scope: once.Anyone, ID: no}), guard.Wait(3*time.Second))
	if errors.Is(err, guard.ErrDuplicate) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = wait.Sleep(ctx, 50*time.Millisecond, nil) // a slow network
	body := fmt.Appendf(nil, `{"no": %q, "item": %d, "number": %d}`, sale.No, sale.Item, sale.Number)
	return g.Apply(ctx, key, guard.Send(guard.Message{Topic: queue, Body: body}), guard.Wait(3*time.Second))
}

// serveWithoutInbox ships in a transaction, and then acknowledges.
func serveWithoutInbox(ctx context.Context, g *guard.Guard, url string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return errors.New("the deliveries have ended")
			}
			if err := shipAlways(ctx, g, d.Body); err != nil {
				return err
			}
			_ = wait.Sleep(ctx, 20*time.Millisecond, nil) // a slow network
			if err := d.Ack(false); err != nil {
				return err
			}
		}
	}
}

func shipAlways(ctx context.Context, g *guard.Guard, body []byte) error {
	sale, err := decode(body)
	if err != nil {
		return err
	}
	shelf := &twoservices.Shelf{ID: sale.Item}
	return g.Do(ctx, fmt.Sprintf("shelf:%d", sale.Item), func(ctx context.Context, tx *gorm.DB) error {
		s := twoservices.Shipment{No: sale.No, Item: sale.Item, Sale: sale.Number}
		err := guard.Update(shelf, func(shelf *twoservices.Shelf) error {
			shelf.Shipped++
			s.Place = shelf.Shipped
			return nil
		}).Run(ctx, tx)
		if err != nil {
			return err
		}
		return tx.Create(&s).Error
	}, guard.Protects(shelf), guard.Wait(3*time.Second))
}
