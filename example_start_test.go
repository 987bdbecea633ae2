package belay_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// openShop is called once, in main. Close the Belay when no more calls begin.
func openShop(ctx context.Context, db *gorm.DB, redisURL string) (*belay.Belay, error) {
	return belay.Open(ctx, belay.Config{Service: "shop", DB: db, Redis: redisURL})
}

// place places an order once. A repeat gets guard.ErrDuplicate.
func place(ctx context.Context, b *belay.Belay, no string) error {
	order := guard.Insert(&Order{No: no})
	return b.Guard.Apply(ctx, "order:"+no, order, guard.Wait(3*time.Second))
}

// openSQL is called once, in main. Close the Belay when no more calls begin.
func openSQL(ctx context.Context, pool *sql.DB, redisURL string) (*belay.Belay, error) {
	return belay.Open(ctx, belay.Config{Service: "shop", SQL: pool, Redis: redisURL})
}

// placeSQL places an order once. A repeat gets guard.ErrDuplicate.
func placeSQL(ctx context.Context, b *belay.Belay, no string) error {
	return b.Guard.DoSQL(ctx, "order:"+no, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders (no) VALUES (?)", no)
		return err
	}, guard.Protects(guard.Row("orders", "no", no)), guard.Wait(3*time.Second))
}

// payments serves a request once for each Idempotency-Key of a user.
func payments(g *guard.Guard, user func(*http.Request) (string, error)) (http.Handler, error) {
	wrap, err := httpguard.New(g, httpguard.Config{Principal: user, Wait: 3 * time.Second})
	if err != nil {
		return nil, err
	}
	return wrap(http.HandlerFunc(pay)), nil
}

// pay is the handler. Its writes and its answer are committed together.
func pay(w http.ResponseWriter, r *http.Request) {
	p := Payment{Cents: 1900}
	if err := guard.Tx(r.Context()).Create(&p).Error; err != nil {
		httpguard.Error(w, err) // rolled back: a repeat runs pay again
		return
	}
	fmt.Fprintf(w, "payment %d\n", p.ID)
}

type Payment struct {
	ID    uint
	Cents int64
}

// take books a message once, however often it is delivered.
func take(ctx context.Context, messages *inbox.Inbox, m inbox.Message) (inbox.Decision, error) {
	return messages.Handle(ctx, m, func(ctx context.Context, tx *gorm.DB) error {
		return tx.Create(&Payment{Cents: 1900}).Error
	}, guard.Wait(3*time.Second))
}

// placeAndMail sends a mail about the order if the order is committed, and else none.
func placeAndMail(ctx context.Context, g *guard.Guard, no string) error {
	return g.Apply(ctx, "order:"+no, guard.All(
		guard.Insert(&Order{No: no}),
		guard.Send(guard.Message{Topic: "order.placed", Body: []byte(no)}),
	), guard.Wait(3*time.Second))
}

// openForMail opens a Belay that calls mail until it returns nil, each time with the same id.
func openForMail(ctx context.Context, db *gorm.DB, redisURL string,
	mail func(context.Context, relay.Message) error) (*belay.Belay, error) {
	toMail := relay.Route{Topic: "order.placed", Handle: mail, Until: 20 * time.Hour}
	return belay.Open(ctx, belay.Config{
		Service: "shop", DB: db, Redis: redisURL,
		Once:     &once.PurgerConfig{}, // for inbox
		Messages: []relay.Route{toMail},
	})
}

// runWithoutRedis serves with locks in a table. locks is a pool for that alone. For other
// databases take sqllock.Postgres or sqllock.SQLite.
func runWithoutRedis(ctx context.Context, db *gorm.DB, locks *sql.DB,
	serve func(context.Context, *belay.Belay) error) error {
	if err := sqllock.Migrate(ctx, locks, sqllock.MySQL); err != nil {
		return err
	}
	engine, err := sqllock.New(locks, sqllock.MySQL, sqllock.Config{})
	if err != nil {
		return err
	}
	defer engine.Close(context.WithoutCancel(ctx))
	b, err := belay.Open(ctx, belay.Config{Service: "shop", DB: db, Engine: engine})
	if err != nil {
		return err
	}
	defer b.Close(context.WithoutCancel(ctx))
	return serve(ctx, b) // which calls place, as with Redis
}
