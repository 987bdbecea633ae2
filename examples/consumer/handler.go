package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// Handled is a message that has taken effect. The row is written in the
// transaction of the effect: both are there, or neither.
type Handled struct {
	MessageID string `gorm:"primaryKey;size:64"`
}

// Account is what messages change.
type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// Message says that somebody has paid something in.
type Message struct {
	ID      string
	Account int64
	Cents   int64
}

type handler struct{ guard *guard.Guard }

// handle lets a message take effect once. It reports whether the queue may
// forget it; if not, the queue delivers it again.
//
// The lock is on the account: messages for one account come one after the other,
// however many consumers there are.
func (h *handler) handle(ctx context.Context, m Message) (ack bool, err error) {
	err = h.guard.Do(ctx, fmt.Sprintf("account:%d", m.Account), func(ctx context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Handled{MessageID: m.ID}).Error; err != nil {
			return err
		}
		return guard.Update(&Account{ID: m.Account}, func(a *Account) error {
			a.Cents += m.Cents
			return nil
		}).Run(ctx, tx)
	}, guard.Protects(&Handled{MessageID: m.ID}, &Account{ID: m.Account}), guard.Wait(5*time.Second))
	switch {
	case err == nil, errors.Is(err, guard.ErrDuplicate): // now, or before
		return true, nil
	case errors.Is(err, guard.ErrBusy), errors.Is(err, guard.ErrUnavailable),
		errors.Is(err, guard.ErrIntercepted), errors.Is(err, guard.ErrLost), errors.Is(err, guard.ErrUnknown):
		return false, nil // nothing is booked, or nobody knows: the next delivery finds out
	}
	return false, fmt.Errorf("handle message %q: %w", m.ID, err)
}
