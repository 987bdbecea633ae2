package chaos_test

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/dbguard"
)

// Order is inserted: once per number.
type Order struct {
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

const (
	counters = 8
	// orderEach is how long an order is the newest. Meanwhile all workers try
	// to insert it, and some of those before.
	orderEach = 40 * time.Millisecond
)

func counterKey(id int64) string { return fmt.Sprintf("counter:%d", id) }

func orderKey(no string) string { return "order:" + no }

// orderNo is the number of the newest order, or of one that is back orders old.
// All processes agree about it.
func orderNo(at int64, back int) string {
	return fmt.Sprint(at/int64(orderEach) - int64(back))
}
