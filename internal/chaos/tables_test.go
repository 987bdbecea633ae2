package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belaygo/belay/dbguard"
)

// Order is inserted: once per number.
type Order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
	By string `gorm:"size:64"`
}

// Claim is an Order that the first layer remembers.
type Claim struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
	By string `gorm:"size:64"`
}

// Counter is updated: N grows by one with each success.
type Counter struct {
	ID      int64
	N       int64
	Version dbguard.Version
}

// Stamped is a Counter whose writes have stamps.
type Stamped struct {
	ID      int64
	N       int64
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// Half is one of two rows that grow together: 2p and 2p+1 make the pair p.
type Half struct {
	ID      int64
	N       int64
	Version dbguard.Version
}

// Item is sold: each success makes a Sale of it and counts it, both or none.
type Item struct {
	ID      int64
	N       int64
	Version dbguard.Version
}

// Sale is the Nth of its Item.
type Sale struct {
	ID   uint
	No   string `gorm:"size:64;uniqueIndex"` // the call that made it
	Item int64  `gorm:"index"`
	N    int64
}

// Account has money, which Transfers move.
type Account struct {
	ID      int64
	Balance int64
	Version dbguard.Version
}

// opening is the balance of each Account at first.
const opening = 100

// Transfer is written with the two Accounts that it changes.
type Transfer struct {
	ID     uint
	No     string `gorm:"size:64;uniqueIndex"` // the call that made it
	Payer  int64
	Payee  int64
	Amount int64
}

// Stock is what all want at once: N grows by one with each success, of which some make a
// Receipt.
type Stock struct {
	ID      int64
	N       int64
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// Receipt is for the Nth of its Stock.
type Receipt struct {
	ID    uint
	No    string `gorm:"size:64;uniqueIndex"` // the call that made it
	Stock int64
	N     int64
	Sent  bool // a message about it
}

// Tally counts the requests that have taken effect.
type Tally struct {
	ID      int64
	N       int64
	Version dbguard.Version
}

// Service is what a request did.
type Service struct {
	ID      uint
	Request int64  `gorm:"index"`
	By      string `gorm:"size:64"` // the call that did it
	N       int64
	Sent    bool // a message about it
}

// Spoil is written in a savepoint that is always rolled back.
type Spoil struct {
	ID uint
	By string `gorm:"size:64"`
}

// tables are all of them.
var tables = []any{&Order{}, &Claim{}, &Counter{}, &Stamped{}, &Half{}, &Item{}, &Sale{}, &Account{}, &Transfer{}, &Stock{}, &Receipt{}, &Tally{}, &Service{}, &Spoil{}, &Depot{}, &Parcel{}, &Arrival{}, &Till{}, &Payment{}}

// A class is what a key names.
type class string

const (
	orders   class = "order"
	claims   class = "claim"
	counters class = "counter"
	stamped  class = "stamped"
	pairs    class = "pair"
	items    class = "item"
	accounts class = "account"
	stocks   class = "stock"
	tallies  class = "tally"
	depots   class = "depot"
	payments class = "payment"
	tills    class = "till"
)

// rowsOf is how many keys of a class there are. Of orders and claims there are always
// new ones.
var rowsOf = map[class]int64{counters: 5, stamped: 3, pairs: 2, items: 4, accounts: 6, stocks: 1, tallies: 3, depots: 4, tills: 2}

// orderEach is how long an order is the newest. Meanwhile all workers try to insert it,
// and some of those before.
const orderEach = 40 * time.Millisecond

// backs is how many of the newest orders there are tries at.
const backs = 3

// payBacks is how many of the newest payments are asked for: some that nobody may call for any more.
const payBacks = 100

func keyOf(c class, id any) string { return fmt.Sprintf("%s:%v", c, id) }

// A pick is a key that was drawn before anybody knew when it is needed.
type pick struct {
	Class class
	N     int64 // the row, or how many orders to go back from the newest one
}

// shares are how often a class is drawn.
var shares = []class{orders, orders, orders, claims, counters, counters, stamped, pairs, items, items, accounts, accounts, stocks, stocks, stocks, stocks, tallies, tallies, tallies, depots, depots, payments}

func drawPick(r *rand.Rand) pick {
	c := shares[r.IntN(len(shares))]
	switch n := rowsOf[c]; {
	case c == payments && r.IntN(3) == 0:
		return pick{c, r.Int64N(payBacks)}
	case n > 0 && c != tallies:
		return pick{c, 1 + r.Int64N(n)}
	}
	return pick{c, r.Int64N(backs)}
}

// id is what the pick names so long after the workers began. All processes agree about
// it.
func (p pick) id(at time.Duration) int64 {
	switch p.Class {
	case tallies: // a request
		return max(1, int64(at/requestEach)-p.N)
	case payments:
		return max(1, int64(at/paymentEach)-p.N)
	}
	if rowsOf[p.Class] > 0 {
		return p.N
	}
	return int64(at/orderEach) - p.N
}

func (p pick) key(at time.Duration) string {
	switch {
	case p.Class == tallies:
		return requestKey(p.id(at))
	case p.Class == payments && p.N%2 == 1:
		return keyOf(tills, tillOf(p.id(at)))
	case p.Class == payments:
		return paymentRequest(p.id(at)).Key()
	}
	return keyOf(p.Class, p.id(at))
}
