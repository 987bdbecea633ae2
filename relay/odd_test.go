package relay_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// A row that is not as Insert writes it is a dead letter of its own, and stops no other one.
func TestOddHeaders(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		store(t, db, row("odd", 0), row("sound", 0))
		testdb.WantNil(t, db.Exec(`UPDATE belay_message SET headers = '{"n":1}' WHERE message_id = 'odd/0'`).Error)
		var r recorder
		start(t, db, to(&r))
		testwait.Until(t, "the odd one is dead, and the other one sent", func() bool {
			list, err := relay.List(bg, db, 10)
			return err == nil && len(list) == 1 && list[0].Dead && list[0].ID == "odd/0" && len(r.ids()) == 1
		})
	})
}

// wild is an error that panics.
type wild struct{ cause *string }

func (w *wild) Error() string { return *w.cause }

// An error that panics when it is asked is like any other one.
func TestWildErrors(t *testing.T) {
	db := openSQLite(t)
	store(t, db, row("a", 0), row("a", 1))
	var r recorder
	first := true
	r.failWith(func(m relay.Message) error {
		if m.ID == "a/0" && first {
			first = false
			return (*wild)(nil)
		}
		return nil
	})
	start(t, db, to(&r))
	emptied(t, db)
	if got := r.ids(); len(got) != 2 || got[0] != "a/0" {
		t.Errorf("sent %q", got)
	}
}

// A call that ends its goroutine is one that has failed.
func TestGoexit(t *testing.T) {
	db := openSQLite(t)
	store(t, db, row("a", 0), row("a", 1))
	var calls atomic.Int64
	var r recorder
	start(t, db, to(publish(func(m relay.Message) error {
		if calls.Add(1) == 1 {
			runtime.Goexit()
		}
		return r.Publish(bg, m)
	})))
	emptied(t, db)
	if got := r.ids(); !slices.Equal(got, idsOf("a", 2)) {
		t.Errorf("sent %q", got)
	}
}

// A relay that died leaves nothing for ever.
func TestDeadRelaysAreDeleted(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		testdb.WantNil(t, db.Exec("INSERT INTO belay_relay (owner, beats, until_ms) VALUES ('dead', 1, 1)").Error)
		start(t, db, to(new(recorder)))
		testwait.Until(t, "one relay is left", func() bool { return count(t, db, "belay_relay") == 1 })
	})
}

// A dropped message leaves nothing, also where no follower comes.
func TestDropLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		store(t, db, message.Row{MessageID: "m1", Topic: "mail"})
		start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{{
			Topic: "mail", Until: time.Hour,
			Handle: func(context.Context, relay.Message) error { return relay.ErrRejected },
		}}}))
		testwait.Until(t, "the message is dead", func() bool { return count(t, db, "belay_parked WHERE dead > 0") == 1 })
		testdb.WantNil(t, relay.Drop(bg, db, "m1"))
		testwait.Gone(t, "rows", func() int { return count(t, db, "belay_parked") + count(t, db, "belay_message") })
	})
}

// A key with many messages, whose call hangs, leaves room for the keys of other lanes.
func TestSlowKeyLeavesRoom(t *testing.T) {
	db := openSQLite(t)
	store(t, db, rowsOf("slow", 1500)...)
	other := "quick"
	for message.Lane(other) == message.Lane("slow") {
		other += "."
	}
	hang, ended := context.WithCancel(bg)
	defer ended()
	sent := make(chan string, 2000)
	start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{{
		Topic: relay.Others, Until: time.Hour,
		Handle: func(_ context.Context, m relay.Message) error {
			if m.Key == "slow" {
				<-hang.Done()
			}
			sent <- m.Key
			return nil
		},
	}}}))
	for range 20 { // later than the window would be full
		store(t, db, message.Row{MessageID: "before" + time.Now().Format(time.RFC3339Nano), Key: other, Topic: "sale"})
		testwait.Until(t, "it is sent", func() bool { return len(sent) > 0 })
		if key := <-sent; key != other {
			t.Fatalf("sent one of %q", key)
		}
	}
}
