package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/amqprelay"
)

func movers(url string) []mover {
	return []mover{
		{"belay", "relay and relay/amqprelay as they come; order of each key, unique id", fillBelay, moveBelay(url)},
		skipLocked(url, 1, "order of all messages"),
		skipLocked(url, 4, "no order"),
		watermillMover(url),
	}
}

// batched calls f with numbers of messages, up to 1,000 at a time.
func batched(n int, f func(from, to int) error) error {
	for from := 0; from < n; from += 1000 {
		if err := f(from, min(n, from+1000)); err != nil {
			return err
		}
	}
	return nil
}

func fillBelay(ctx context.Context, pool *sql.DB, queue string, n int) error {
	db, err := dbguard.Open(ctx, pool)
	if err != nil {
		return err
	}
	if err := relay.Migrate(ctx, db); err != nil {
		return err
	}
	base, err := message.Open(db, "peers")
	if err != nil {
		return err
	}
	return batched(n, func(from, to int) error {
		var rows []message.Row
		for i := from; i < to; i++ {
			rows = append(rows, message.Row{MessageID: fmt.Sprint("peers/", i), Key: keyOf(i), Topic: queue, Body: bodyOf(i)})
		}
		return base.InTx(ctx, func(c sqldb.Conn) error { return message.Insert(ctx, c, base.Dialect, rows) })
	})
}

func moveBelay(url string) func(ctx context.Context, pool *sql.DB, queue string) error {
	return func(ctx context.Context, pool *sql.DB, _ string) error {
		db, err := dbguard.Open(ctx, pool)
		if err != nil {
			return err
		}
		to, err := amqprelay.New(url, amqprelay.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		r, err := relay.New(db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: to}}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		<-ctx.Done()
		ctx = context.WithoutCancel(ctx)
		return errors.Join(r.Close(ctx), to.Close(ctx))
	}
}

// skipLocked is what one writes by hand: each worker locks 100 rows, publishes them, waits for the
// confirms, and deletes the rows.
func skipLocked(url string, workers int, order string) mover {
	return mover{
		name:     fmt.Sprintf("skip-locked x %d", workers),
		settings: fmt.Sprintf("a plain table, FOR UPDATE SKIP LOCKED, batches of 100, %d at a time; %s", workers, order),
		fill:     fillPlain,
		move: func(ctx context.Context, pool *sql.DB, queue string) error {
			conn, err := amqp.Dial(url)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			all, ctx := errgroup.WithContext(ctx)
			for range workers {
				all.Go(func() error { return movePlain(ctx, pool, conn, queue) })
			}
			return all.Wait()
		},
	}
}

func fillPlain(ctx context.Context, pool *sql.DB, _ string, n int) error {
	if _, err := pool.ExecContext(ctx, "CREATE TABLE messages (id BIGINT AUTO_INCREMENT PRIMARY KEY, message_key VARCHAR(64) NOT NULL, body BLOB NOT NULL) ENGINE = InnoDB"); err != nil {
		return err
	}
	return batched(n, func(from, to int) error {
		var args []any
		for i := from; i < to; i++ {
			args = append(args, keyOf(i), bodyOf(i))
		}
		_, err := pool.ExecContext(ctx, "INSERT INTO messages (message_key, body) VALUES "+strings.Repeat(", (?, ?)", to-from)[2:], args...) //nolint:gosec // question marks
		return err
	})
}

func movePlain(ctx context.Context, pool *sql.DB, conn *amqp.Connection, queue string) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := moveBatch(ctx, pool, ch, queue)
		if refusal, ok := errors.AsType[*mysql.MySQLError](err); ok && refusal.Number == 1213 { // a deadlock: it publishes them again
			continue
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func moveBatch(ctx context.Context, pool *sql.DB, ch *amqp.Channel, queue string) (err error) {
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	rows, err := tx.QueryContext(ctx, "SELECT id, body FROM messages ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var ids []any
	var confirms []*amqp.DeferredConfirmation
	for rows.Next() {
		var id int64
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: fmt.Sprint(id), Body: body})
		if err != nil {
			return err
		}
		ids, confirms = append(ids, id), append(confirms, c)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		return errors.Join(err, tx.Commit())
	}
	for _, c := range confirms {
		if ok, err := c.WaitContext(ctx); err != nil || !ok {
			return errors.Join(err, errors.New("a message is not confirmed"))
		}
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM messages WHERE id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", ids...); err != nil { //nolint:gosec // question marks
		return err
	}
	return tx.Commit()
}
