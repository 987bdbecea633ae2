package main

import (
	"context"
	"errors"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/inbox"
)

func sqliteDialect(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: dsn})
}

// A message is booked once, however often it is delivered, also when no lock holds.
func TestBookedOnce(t *testing.T) {
	g := guardtest.Open(t, sqliteDialect, &Account{})
	if err := g.DB.Create(&Account{ID: 1}).Error; err != nil {
		t.Fatal(err)
	}
	deliver := func(ctx context.Context) inbox.Decision {
		box, err := inbox.New(g.Peer(t, g.DB), inbox.Config{Consumer: "booking"})
		if err != nil {
			t.Fatal(err)
		}
		decision, _ := (&handler{box}).handle(ctx, Message{ID: "m-1", Account: 1, Cents: 100})
		return decision
	}
	if got := deliver(t.Context()); got != inbox.Ack {
		t.Errorf("the first delivery: %v", got)
	}
	g.LoseAll(true)
	for range 3 {
		deliver(t.Context())
	}
	var a Account
	if err := g.DB.Take(&a, 1).Error; err != nil || a.Cents != 100 {
		t.Errorf("booked %d cents, %v, want 100", a.Cents, err)
	}
}

// A message for an account that does not exist is a dead letter: no further delivery helps.
func TestUnknownAccountIsRejected(t *testing.T) {
	g := guardtest.Open(t, sqliteDialect, &Account{})
	box, err := inbox.New(g.Guard, inbox.Config{Consumer: "booking"})
	if err != nil {
		t.Fatal(err)
	}
	decision, err := (&handler{box}).handle(t.Context(), Message{ID: "m-1", Account: 99, Cents: 100})
	if decision != inbox.Reject || !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("%v, %v; want a rejection", decision, err)
	}
}
