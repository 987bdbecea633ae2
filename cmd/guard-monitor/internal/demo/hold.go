package main

import (
	"context"
	"errors"
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

// standing sends r, and has meanwhile done while its order stands. It returns the
// answer to r; err also says if there was one before the order stood.
func (r request) standing(ctx context.Context, meanwhile func() error) (answer, err error) {
	stand := r.to.hold.arm()
	answers := make(chan error, 1)
	go func() { answers <- r.to.buy(ctx, r.no) }()
	select {
	case <-stand.reached:
		err = meanwhile()
		close(stand.end) // the order goes on
		return <-answers, err
	case answer = <-answers:
		close(stand.end) // no other order stands
		return answer, r.early(answer)
	}
}

// early is wrong: the answer to r came before its lock could get lost.
func (r request) early(answer error) error {
	return errors.Join(errors.New(r.to.name+" did not get to its insert"), answer)
}
