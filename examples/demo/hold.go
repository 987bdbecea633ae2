package main

import (
	"sync/atomic"

	"gorm.io/gorm"
)

// hold makes a transaction stand still in front of its INSERT, as a process does
// that the operating system, or its garbage collector, stops at the wrong moment.
type hold struct {
	next atomic.Pointer[stand]
}

// stand is one such moment.
type stand struct {
	reached chan struct{} // closed when the transaction stands
	end     chan struct{} // close it to let it go on
}

func (h *hold) install(db *gorm.DB) error {
	return db.Callback().Create().Before("gorm:create").Register("demo:hold", func(tx *gorm.DB) {
		if tx.Statement.Table != "orders" {
			return
		}
		s := h.next.Swap(nil)
		if s == nil {
			return
		}
		close(s.reached)
		select {
		case <-s.end:
		case <-tx.Statement.Context.Done(): // the lease ends, or the request
		}
	})
}

// arm has the next order stand.
func (h *hold) arm() *stand {
	s := &stand{make(chan struct{}), make(chan struct{})}
	h.next.Store(s)
	return s
}
