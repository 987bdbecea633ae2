package guardotel_test

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardotel"
	"github.com/belaygo/belay/lock"
)

// Spans go to the global provider, and traces into the events.
func Example() {
	open := func(db *gorm.DB, locker *lock.Locker) (*guard.Guard, error) {
		return guard.New(db, locker, guard.Config{Service: "orders", Observer: guardotel.New(nil)})
	}
	_ = open
}
