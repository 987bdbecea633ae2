package main

import (
	"context"
	"database/sql"

	"github.com/ThreeDotsLabs/watermill"
	watermillamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	watermillmessage "github.com/ThreeDotsLabs/watermill/message"
)

// watermillMover is Watermill's forwarder. Its table keeps what was sent, behind an offset.
func watermillMover(url string) mover {
	return mover{
		name:     "watermill",
		settings: "components/forwarder from watermill-sql to watermill-amqp with confirms, batches of 100; order of all messages",
		fill:     fillWatermill,
		move: func(ctx context.Context, pool *sql.DB, _ string) error {
			from, err := watermillsql.NewSubscriber(watermillsql.BeginnerFromStdSQL(pool), watermillsql.SubscriberConfig{
				SchemaAdapter: watermillsql.DefaultMySQLSchema{}, OffsetsAdapter: watermillsql.DefaultMySQLOffsetsAdapter{}, InitializeSchema: true,
			}, watermill.NopLogger{})
			if err != nil {
				return err
			}
			cfg := watermillamqp.NewDurableQueueConfig(url)
			cfg.Publish.ConfirmDelivery = true
			to, err := watermillamqp.NewPublisher(cfg, watermill.NopLogger{})
			if err != nil {
				return err
			}
			defer func() { _ = to.Close() }()
			f, err := forwarder.NewForwarder(from, to, watermill.NopLogger{}, forwarder.Config{})
			if err != nil {
				return err
			}
			return f.Run(ctx)
		},
	}
}

func fillWatermill(_ context.Context, pool *sql.DB, queue string, n int) error {
	table, err := watermillsql.NewPublisher(watermillsql.BeginnerFromStdSQL(pool), watermillsql.PublisherConfig{
		SchemaAdapter: watermillsql.DefaultMySQLSchema{}, AutoInitializeSchema: true,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	to := forwarder.NewPublisher(table, forwarder.PublisherConfig{})
	return batched(n, func(first, last int) error {
		var all []*watermillmessage.Message
		for i := first; i < last; i++ {
			m := watermillmessage.NewMessage(watermill.NewUUID(), bodyOf(i))
			m.Metadata.Set("key", keyOf(i))
			all = append(all, m)
		}
		return to.Publish(queue, all...)
	})
}
