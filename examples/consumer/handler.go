package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
)

// Account is the account that messages change.
type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// Message reports a payment into an account.
type Message struct {
	ID      string
	Account int64
	Cents   int64
}

type handler struct{ inbox *inbox.Inbox }

// handle lets a message take effect once, however often it is delivered. Messages for
// one account run one after the other.
func (h *handler) handle(ctx context.Context, m Message) (inbox.Decision, error) {
	book := func(ctx context.Context, tx *gorm.DB) error {
		err := guard.Update(&Account{ID: m.Account}, func(a *Account) error {
			a.Cents += m.Cents
			return nil
		}).Run(ctx, tx)
		if errors.Is(err, gorm.ErrRecordNotFound) { // no redelivery will find the account
			return inbox.Rejected(err)
		}
		return err
	}
	account := guard.Also(fmt.Sprintf("account:%d", m.Account), &Account{ID: m.Account})
	return h.inbox.Handle(ctx, inbox.Message{ID: m.ID, Body: m.body()}, book, account, guard.Wait(5*time.Second))
}

// body stands for the bytes that a broker would deliver.
func (m Message) body() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(m.Account)), uint64(m.Cents)) //nolint:gosec // no negative numbers
}
