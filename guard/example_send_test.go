package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/message"
)

// sellAndMail sells one item and sends a message about it, which leaves with the commit or never.
// A body that is the same for each call needs no function: guard.Send.
func sellAndMail(ctx context.Context, g *guard.Guard, no, buyer string, item int64) error {
	i := Item{ID: item}
	return g.Apply(ctx, fmt.Sprintf("item:%d", item), guard.All(
		guard.Insert(&Sale{No: no, Item: item, Buyer: buyer}),
		guard.Update(&i, func(i *Item) error {
			if i.Left == 0 {
				return ErrSoldOut
			}
			i.Left--
			return nil
		}),
		guard.SendFunc(func() (guard.Message, error) {
			body, err := json.Marshal(map[string]any{"no": no, "buyer": buyer, "left": i.Left})
			return guard.Message{Topic: "sale.made", Body: body}, err
		}),
	))
}

func ExampleSendFunc() {
	db, done := exampleDB(&Sale{}, &Item{})
	defer done()
	migrateMessages(db)
	db.Create(&Item{ID: 7, Left: 1})
	g, stop := exampleGuard(db)
	defer stop()

	fmt.Println(sellAndMail(context.Background(), g, "A-1", "ann", 7))
	fmt.Println(sellAndMail(context.Background(), g, "A-2", "ben", 7))
	var bodies []string
	db.Table("belay_message").Pluck("body", &bodies) // package relay takes them out
	fmt.Println(bodies)
	// Output:
	// <nil>
	// sold out
	// [{"buyer":"ann","left":0,"no":"A-1"}]
}

// migrateMessages creates the tables of messages, as relay.Migrate does.
func migrateMessages(db *gorm.DB) {
	in, err := message.Open(db, "example")
	if err == nil {
		err = message.Migrate(context.Background(), in)
	}
	if err != nil {
		log.Fatal(err)
	}
}
