package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

var bg = context.Background()

type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// each runs f on every database, with an account.
func each(t *testing.T, f func(t *testing.T, db *gorm.DB, g *guardtest.Guard)) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		testdb.WantNil(t, db.AutoMigrate(&Account{}))
		testdb.WantNil(t, once.Migrate(bg, db))
		testdb.WantNil(t, db.Create(&Account{ID: 7}).Error)
		f(t, db, guardtest.New(t, db))
	})
}

func book(ctx context.Context, tx *gorm.DB) error {
	return guard.Update(&Account{ID: 7}, func(a *Account) error { a.Cents++; return nil }).Run(ctx, tx)
}

func wantCents(t *testing.T, db *gorm.DB, want int64) {
	t.Helper()
	var a Account
	testdb.WantNil(t, db.Take(&a, 7).Error)
	if a.Cents != want {
		t.Errorf("the account has %d cents, want %d", a.Cents, want)
	}
}

// TestHandle: a message takes effect once in each group of consumers.
func TestHandle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		for _, consumer := range []string{"billing", "mail"} {
			b, err := inbox.New(g.Guard, inbox.Config{Consumer: consumer})
			testdb.WantNil(t, err)
			want := func(d inbox.Decision, is error, m inbox.Message, op guard.Op) {
				t.Helper()
				got, err := b.Handle(bg, m, op, guard.Also("account:7", &Account{ID: 7}))
				if got != d || !errors.Is(err, is) {
					t.Errorf("Handle(%s) = %v, %v, want %v, %v", m.ID, got, err, d, is)
				}
			}
			oops := errors.New("oops")
			fails := func(with error) guard.Op {
				return func(ctx context.Context, tx *gorm.DB) error { return errors.Join(book(ctx, tx), with) }
			}
			m := inbox.Message{ID: "1", Body: []byte("a")}
			want(inbox.Retry, oops, m, fails(oops))
			want(inbox.Reject, oops, m, fails(inbox.Rejected(oops)))
			want(inbox.Reject, inbox.Rejected(nil), m, fails(inbox.Rejected(nil)))
			want(inbox.Ack, nil, m, book)
			want(inbox.Ack, nil, m, fails(errors.New("ran again")))
			want(inbox.Ack, nil, inbox.Message{ID: "1"}, book)
			want(inbox.Reject, guard.ErrMismatch, inbox.Message{ID: "1", Body: []byte("b")}, book)
			want(inbox.Reject, once.ErrRequest, inbox.Message{}, book)
			want(inbox.Ack, nil, inbox.Message{ID: "2", Body: []byte("a")}, book)
		}
		wantCents(t, db, 4)
		if events := g.Events.All(); len(events) != 0 {
			t.Errorf("events are %+v", events)
		}
	})
}

// TestRetry: whatever Belay does not know, another delivery finds out.
func TestRetry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		b, err := inbox.New(g.Guard, inbox.Config{Consumer: "billing"})
		testdb.WantNil(t, err)
		other, err := inbox.New(g.Peer(t, db), inbox.Config{Consumer: "billing"})
		testdb.WantNil(t, err)
		m := inbox.Message{ID: "1"}
		got, err := b.Handle(bg, m, func(ctx context.Context, tx *gorm.DB) error {
			d, err := other.Handle(bg, m, book)
			if d != inbox.Retry || !errors.Is(err, guard.ErrBusy) {
				t.Errorf("Handle = %v, %v, want Retry, busy", d, err)
			}
			return book(ctx, tx)
		})
		if got != inbox.Ack || err != nil {
			t.Errorf("Handle = %v, %v, want Ack", got, err)
		}
		wantCents(t, db, 1)
	})
}

// TestRedelivered: whether a message that is redelivered has taken effect is known without
// the lock.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		b, err := inbox.New(g.Guard, inbox.Config{Consumer: "billing"})
		testdb.WantNil(t, err)
		want := func(d inbox.Decision, is error, m inbox.Message) {
			t.Helper()
			if got, err := b.Handle(bg, m, book); got != d || !errors.Is(err, is) {
				t.Errorf("Handle(%+v) = %v, %v, want %v, %v", m, got, err, d, is)
			}
		}
		m := inbox.Message{ID: "1", Body: []byte("a"), Redelivered: true}
		want(inbox.Ack, nil, m)
		key := once.Request{Operation: "billing", Scope: once.Anyone, ID: "1"}.Key()
		testdb.WantNil(t, g.Peer(t, db).Do(bg, key, func(context.Context, *gorm.DB) error {
			want(inbox.Ack, nil, m)
			want(inbox.Retry, guard.ErrBusy, inbox.Message{ID: "1", Body: m.Body})
			return nil
		}))
		want(inbox.Reject, guard.ErrMismatch, inbox.Message{ID: "1", Body: []byte("b"), Redelivered: true})
		want(inbox.Reject, once.ErrRequest, inbox.Message{Redelivered: true})
		wantCents(t, db, 1)
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ *gorm.DB, g *guardtest.Guard) {
		for _, consumer := range []string{"", "Billing", "a b"} {
			if _, err := inbox.New(g.Guard, inbox.Config{Consumer: consumer}); err == nil {
				t.Errorf("no error for the consumer %q", consumer)
			}
		}
	})
	if _, err := inbox.New(nil, inbox.Config{Consumer: "billing"}); err == nil {
		t.Error("no error without a guard")
	}
}

func ExampleInbox_Handle() {
	var b *inbox.Inbox // from New
	deliver := func(id string, body []byte) {
		decision, err := b.Handle(context.Background(), inbox.Message{ID: id, Body: body}, book, guard.Also("account:7", &Account{ID: 7}))
		switch decision {
		case inbox.Ack: // tell the broker so
		case inbox.Retry: // later, err says why
		case inbox.Reject: // to the dead letters
			fmt.Println(err)
		}
	}
	_ = deliver
}

type Receipt struct {
	ID int64
	No string `gorm:"size:64;uniqueIndex"`
}

// TestRowOfAnotherMessage: a message whose operation meets a row that another message has made
// has not taken effect, and is not acknowledged.
func TestRowOfAnotherMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		testdb.WantNil(t, db.AutoMigrate(&Receipt{}))
		b, err := inbox.New(g.Guard, inbox.Config{Consumer: "billing"})
		testdb.WantNil(t, err)
		receipt := func(ctx context.Context, tx *gorm.DB) error {
			return errors.Join(book(ctx, tx), guard.Insert(&Receipt{No: "1"}).Run(ctx, tx))
		}
		opts := []guard.Option{guard.Also("account:7", &Account{ID: 7}), guard.Also("receipt:1", &Receipt{No: "1"}), guard.Remember(time.Minute)}
		for _, m := range []inbox.Message{{ID: "1"}, {ID: "2"}, {ID: "2", Redelivered: true}} {
			want, is := inbox.Ack, error(nil)
			if m.ID == "2" {
				want, is = inbox.Reject, guard.ErrExists
			}
			if got, err := b.Handle(bg, m, receipt, opts...); got != want || !errors.Is(err, is) {
				t.Errorf("Handle(%+v) = %v, %v, want %v, %v", m, got, err, want, is)
			}
		}
		wantCents(t, db, 1)
		if got, err := b.Handle(bg, inbox.Message{ID: "2"}, book, opts...); got != inbox.Ack || err != nil {
			t.Errorf("Handle = %v, %v, want Ack", got, err)
		}
		wantCents(t, db, 2)
	})
}

// TestRememberedBody: another body under the same id is rejected, also if the first layer
// remembers the message.
func TestRememberedBody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		b, err := inbox.New(g.Guard, inbox.Config{Consumer: "billing"})
		testdb.WantNil(t, err)
		for body, want := range map[string]inbox.Decision{"a": inbox.Ack, "b": inbox.Reject} {
			_, err := b.Handle(bg, inbox.Message{ID: "1", Body: []byte("a")}, book, guard.Remember(time.Minute))
			testdb.WantNil(t, err)
			if got, err := b.Handle(bg, inbox.Message{ID: "1", Body: []byte(body)}, book, guard.Remember(time.Minute)); got != want {
				t.Errorf("body %s: %v, %v, want %v", body, got, err, want)
			}
		}
		wantCents(t, db, 1)
	})
}

// TestMessageWithoutID: nothing is done for it, and the error names who must change what.
func TestMessageWithoutID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		box, err := inbox.New(g.Guard, inbox.Config{Consumer: "bank"})
		testdb.WantNil(t, err)
		decision, err := box.Handle(bg, inbox.Message{Body: []byte("1")}, book)
		if decision != inbox.Reject || !errors.Is(err, inbox.Rejected(nil)) || !strings.Contains(err.Error(), "its producer must set one, such as MessageId") {
			t.Errorf("%v, %v; want a rejection that names the producer's MessageId", decision, err)
		}
		wantCents(t, db, 0)
	})
}

// TestKeyThatIsNone: a message whose keys can never be locked goes to the dead letters. An
// operation's own error says nothing of them.
func TestKeyThatIsNone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, g *guardtest.Guard) {
		b, err := inbox.New(g.Guard, inbox.Config{Consumer: "billing"})
		testdb.WantNil(t, err)
		var many []guard.Option
		for n := range 17 {
			many = append(many, guard.Also(fmt.Sprint("account:", n)))
		}
		for name, opts := range map[string][]guard.Option{
			"a brace": {guard.Also("account:{7")}, "no UTF-8": {guard.Also("account:\xff")}, "too long": {guard.Also(strings.Repeat("7", 513))}, "too many": many,
		} {
			if got, err := b.Handle(bg, inbox.Message{ID: "1"}, book, opts...); got != inbox.Reject || !errors.Is(err, inbox.Rejected(nil)) {
				t.Errorf("%s: Handle = %v, %v, want Reject", name, got, err)
			}
		}
		own := func(context.Context, *gorm.DB) error { return fmt.Errorf("another service: %w", lock.ErrInvalidKey) }
		if got, err := b.Handle(bg, inbox.Message{ID: "1"}, own); got != inbox.Retry {
			t.Errorf("own error: Handle = %v, %v, want Retry", got, err)
		}
		wantCents(t, db, 0)
	})
}

// TestMessageInPart: a message that a procedure may have let take effect in part goes to the dead
// letters: no delivery finds out what is missing.
func TestMessageInPart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB, locks *guardtest.Guard) {
		if db.Name() != "mysql" {
			t.Skip("no procedure ends the transaction")
		}
		testdb.WantNil(t, db.Exec("CREATE PROCEDURE ends() BEGIN COMMIT; END").Error)
		for _, g := range []*guard.Guard{locks.Guard, locks.Peer(t, db)} {
			box, err := inbox.New(g, inbox.Config{Consumer: "bank"})
			testdb.WantNil(t, err)
			decision, err := box.Handle(bg, inbox.Message{ID: "1"}, func(ctx context.Context, tx *gorm.DB) error {
				return errors.Join(book(ctx, tx), tx.Exec("CALL ends()").Error)
			})
			if decision != inbox.Reject || !errors.Is(err, guard.ErrUnknown) {
				t.Errorf("Handle = %v, %v, want Reject and ErrUnknown", decision, err)
			}
			locks.Forget(once.Request{Operation: "bank", Scope: once.Anyone, ID: "1"}.Key()) // it is left to its ttl
		}
		wantCents(t, db, 1)
	})
}
