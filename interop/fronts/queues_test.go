package fronts_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/pgxguard"
	"github.com/belaygo/belay/internal/teststack"
)

// A mail is a job of River.
type mail struct {
	To string `json:"to"`
}

// Kind implements river.JobArgs.
func (mail) Kind() string { return "mail" }

// TestQueues: a job of River, or a message of Watermill, that an operation inserts is there once: with
// its rows, not without them, and not again by its repeat.
func TestQueues(t *testing.T) {
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, teststack.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(ctx, "CREATE TABLE sales (no VARCHAR(64) NOT NULL PRIMARY KEY, buyer VARCHAR(64) NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	sqlPool := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { sqlPool.Close() })
	db, err := dbguard.Open(ctx, sqlPool)
	if err != nil {
		t.Fatal(err)
	}
	g := guardtest.New(t, db)
	for name, queue := range map[string]struct {
		insert func(ctx context.Context) error
		table  string
	}{
		"river by pgx":              {riverByPgx(t, pool), "river_job"},
		"river by database/sql":     {riverBySQL(t), "river_job"},
		"watermill by pgx":          {watermillBy(t, pool, func(ctx context.Context) (wsql.ContextExecutor, error) { return pgxExecutor(ctx) }), "watermill_mails"},
		"watermill by database/sql": {watermillBy(t, pool, sqlExecutor), "watermill_mails"},
	} {
		t.Run(name, func(t *testing.T) {
			count := func() (n int) {
				if err := pool.QueryRow(ctx, "SELECT COUNT(*) FROM "+queue.table).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := count()
			sell := func(undo error) error {
				return g.DoSQL(ctx, "sale:"+name, func(ctx context.Context, tx *sql.Tx) error {
					if err := queue.insert(ctx); err != nil {
						return err
					}
					if _, err := tx.ExecContext(ctx, "INSERT INTO sales (no, buyer) VALUES ($1, 'ann')", name); err != nil {
						return err
					}
					return undo
				}, guard.Protects(guard.Row("sales", "no", name)))
			}
			check(t, "an error that rolls back", func() error { return want(sell(errUndo), errUndo) })
			check(t, "a sale", func() error { return sell(nil) })
			check(t, "its repeat", func() error { return want(sell(nil), guard.ErrDuplicate) })
			check(t, "what is there", func() error {
				if n := count() - before; n != 1 {
					return fmt.Errorf("%d in the queue, want 1", n)
				}
				return nil
			})
		})
	}
}

func riverByPgx(t *testing.T, pool *pgxpool.Pool) func(context.Context) error {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	client, err := river.NewClient(driver, &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		tx, err := pgxguard.Tx(ctx)
		if err != nil {
			return err
		}
		_, err = client.InsertTx(ctx, tx, mail{"ann"}, nil)
		return err
	}
}

func riverBySQL(t *testing.T) func(context.Context) error {
	client, err := river.NewClient(riverdatabasesql.New(nil), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		tx, err := guard.SQL(ctx)
		if err != nil {
			return err
		}
		_, err = client.InsertTx(ctx, tx, mail{"ann"}, nil)
		return err
	}
}

func pgxExecutor(ctx context.Context) (wsql.ContextExecutor, error) {
	tx, err := pgxguard.Tx(ctx)
	if err != nil {
		return nil, err
	}
	return wsql.TxFromPgx(tx), nil
}

func sqlExecutor(ctx context.Context) (wsql.ContextExecutor, error) {
	tx, err := guard.SQL(ctx)
	if err != nil {
		return nil, err
	}
	return wsql.TxFromStdSQL(tx), nil
}

func watermillBy(t *testing.T, pool *pgxpool.Pool, executor func(context.Context) (wsql.ContextExecutor, error)) func(context.Context) error {
	schema := wsql.DefaultPostgreSQLSchema{}
	setup, err := schema.SchemaInitializingQueries(wsql.SchemaInitializingQueriesParams{Topic: "mails"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range setup {
		if _, err := pool.Exec(t.Context(), q.Query, q.Args...); err != nil {
			t.Fatal(err)
		}
	}
	return func(ctx context.Context) error {
		in, err := executor(ctx)
		if err != nil {
			return err
		}
		publisher, err := wsql.NewPublisher(in, wsql.PublisherConfig{SchemaAdapter: schema}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		m := message.NewMessage(watermill.NewUUID(), message.Payload(`"hello"`))
		m.SetContext(ctx)
		return publisher.Publish("mails", m)
	}
}
