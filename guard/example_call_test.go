package guard_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// A Purchase is what a buyer wants, and what has become of it.
type Purchase struct {
	No    string `gorm:"primaryKey;size:64"`
	Buyer string
	Item  int64
	Cents int
	State string
}

// A Result is the answer to a purchase. Text is the receipt of one that is paid, or else the reason.
type Result struct {
	Paid bool
	Text string
}

// purchase holds an item, charges the buyer, and gives the item back if the card is declined.
func purchase(charge func(ctx context.Context, id string, cents int) (string, error)) guard.Call[Purchase, string, Result] {
	return guard.Call[Purchase, string, Result]{
		Name: "purchase",
		Reserve: func(ctx context.Context, tx *gorm.DB, p Purchase) error {
			p.State = "reserved"
			return guard.All(
				guard.Insert(&p), // a No that another buyer has is refused here, before the charge
				guard.Update(&Item{ID: p.Item}, func(i *Item) error {
					if i.Left == 0 {
						return guard.Refuse(Result{Text: "sold out"})
					}
					i.Left--
					return nil
				}),
			).Run(ctx, tx)
		},
		Do: func(ctx context.Context, id string, p Purchase) (string, error) {
			receipt, err := charge(ctx, id, p.Cents)
			if errors.Is(err, errDeclined) { // the provider's last word, no timeout and no 5xx
				return "", guard.Refuse(err.Error())
			}
			return receipt, err
		},
		Settle: func(ctx context.Context, tx *gorm.DB, p Purchase, o guard.Outcome[string]) (Result, error) {
			result := Result{Paid: !o.Refused, Text: o.Value}
			if result.Paid {
				return result, tx.Model(&p).Update("state", "paid").Error
			}
			if err := tx.Model(&p).Update("state", "declined").Error; err != nil {
				return result, err
			}
			return result, guard.Update(&Item{ID: p.Item}, func(i *Item) error { i.Left++; return nil }).Run(ctx, tx)
		},
		Timeout: 20 * time.Second,
		Until:   20 * time.Hour, // the provider remembers ids for a day
	}
}

var errDeclined = errors.New("declined")

// buy serves a purchase once, however often it is repeated. A card that is declined is no error.
func buy(ctx context.Context, g *guard.Guard, c guard.Call[Purchase, string, Result], p Purchase) (Result, error) {
	r := once.Request{Operation: "purchase", Scope: []string{p.Buyer}, ID: p.No, Print: once.PrintOf(1, fmt.Append(nil, p))}
	got, err := c.Run(ctx, g, r, p, guard.Wait(3*time.Second), guard.Also(fmt.Sprintf("item:%d", p.Item), &Item{ID: p.Item}))
	return got.Value, err
}

func ExampleCall() {
	db, done := exampleDB(&Purchase{}, &Item{})
	defer done()
	ctx := context.Background()
	if err := errors.Join(once.Migrate(ctx, db), once.MigrateCalls(ctx, db)); err != nil {
		log.Fatal(err)
	}
	db.Create(&Item{ID: 7, Left: 1})
	g, stop := exampleGuard(db)
	defer stop()

	charged := make(map[string]string) // by id, as the provider knows it
	away := errors.New("no answer")
	c := purchase(func(_ context.Context, id string, cents int) (string, error) {
		if charged[id] == "" {
			charged[id] = fmt.Sprintf("receipt %d over %d", len(charged)+1, cents)
			return "", away // it has charged, and its answer is lost
		}
		return charged[id], nil
	})
	p := Purchase{No: "A-1", Buyer: "ann", Item: 7, Cents: 500}
	_, err := buy(ctx, g, c, p)
	fmt.Println(errors.Is(err, guard.ErrPending))
	fmt.Println(buy(ctx, g, c, p))
	fmt.Println(buy(ctx, g, c, Purchase{No: "B-1", Buyer: "ben", Item: 7, Cents: 500}))
	fmt.Println(len(charged), "charge")
	// Output:
	// true
	// {true receipt 1 over 500} <nil>
	// {false sold out} <nil>
	// 1 charge
}
