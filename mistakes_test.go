package belay_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// A Coupon has neither a unique index nor a version.
type Coupon struct {
	ID   uint
	Code string `gorm:"size:64"`
}

// A Chair has a version. Its table is missing.
type Chair struct {
	ID      int64
	No      string `gorm:"size:64;not null;uniqueIndex"`
	Version dbguard.Version
}

// A beginner has a database with the tables of Order and Coupon, and a Guard without Belay's
// own tables.
type beginner struct {
	*testing.T
	db    *gorm.DB
	guard *guard.Guard
}

func newBeginner(t *testing.T) beginner {
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	testdb.WantNil(t, db.AutoMigrate(&Order{}, &Coupon{}))
	locker, err := lock.New(memlock.New(), lock.Config{})
	testdb.WantNil(t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "shop", Logger: slog.New(slog.DiscardHandler)})
	testdb.WantNil(t, err)
	t.Cleanup(func() {
		testdb.WantNil(t, errors.Join(g.Close(context.Background()), locker.Close(context.Background())))
	})
	return beginner{t, db, g}
}

// opens returns the error of opening a Belay.
func (t beginner) opens(cfg belay.Config) error {
	cfg.Logger = slog.New(slog.DiscardHandler)
	b, err := belay.Open(t.Context(), cfg)
	if err == nil {
		wantClosed(t.T, b)
	}
	return err
}

// locks places an order whose lock is in Redis.
func (t beginner) locks(url, key string) error {
	b := open(t.T, belay.Config{Service: "shop", DB: t.db, Redis: url, Logger: slog.New(slog.DiscardHandler)})
	return b.Guard.Apply(t.Context(), key, guard.Insert(&Order{No: key}))
}

// opensSQL opens a Belay on MariaDB, whose DSN change makes wrong.
func (t beginner) opensSQL(change func(*driver.Config)) error {
	c, err := driver.ParseDSN(teststack.MySQL(t))
	testdb.WantNil(t, err)
	change(c)
	pool, err := sql.Open("mysql", c.FormatDSN())
	testdb.WantNil(t, err)
	defer pool.Close()
	return t.opens(belay.Config{Service: "shop", SQL: pool, Engine: memlock.New()})
}

// does runs an operation under the key order:7.
func (t beginner) does(op guard.Op, opts ...guard.Option) error {
	return t.guard.Do(t.Context(), "order:7", op, opts...)
}

func (t beginner) applies(change guard.Change) error {
	return t.guard.Apply(t.Context(), "order:7", change)
}

func (t beginner) serves(r once.Request) error { return t.does(nothing, guard.For(r)) }

func nothing(context.Context, *gorm.DB) error { return nil }

// mistakes are the commonest mistakes of a first hour, in the order of docs/mistakes.md. The text
// of each error contains what to do.
var mistakes = []struct {
	do   string
	make func(t beginner) error
}{
	// To open Belay.
	{"set it to the name", func(t beginner) error { return t.opens(belay.Config{DB: t.db, Engine: memlock.New()}) }},
	{"set DB to", func(t beginner) error { return t.opens(belay.Config{Service: "shop", Engine: memlock.New()}) }},
	{"set Redis to a URL", func(t beginner) error { return t.opens(belay.Config{Service: "shop", DB: t.db}) }},
	{"put one of them before the address", func(t beginner) error {
		return t.opens(belay.Config{Service: "shop", DB: t.db, Redis: "127.0.0.1:6379"})
	}},
	{"/ @ : ? # and % as %2F", func(t beginner) error {
		return t.opens(belay.Config{Service: "shop", DB: t.db, Redis: "redis://:p@ss/word@127.0.0.1:6379"})
	}},
	{"check that it runs, and its address", func(t beginner) error { return t.locks("redis://127.0.0.1:9", "order:7") }},
	{"check the user and the password", func(t beginner) error {
		s := teststack.StartRedis(t, "")
		s.Must("config", "set", "requirepass", "sesame")
		return t.locks("redis://"+s.Addr, "order:7")
	}},
	{"open it by redis+cluster://", func(t beginner) error {
		nodes := teststack.Redis(t)
		for {
			key := teststack.Key(t, "order") // one that another node has
			if err := t.locks("redis://"+nodes[0], key); err != nil {
				return err
			}
		}
	}},
	{"open it by redis://", func(t beginner) error {
		return t.locks("redis+cluster://"+teststack.StartRedis(t, "").Addr, "order:7")
	}},
	{"check the address", func(t beginner) error {
		return t.opensSQL(func(c *driver.Config) { c.Addr = "127.0.0.1:9" })
	}},
	{"the user and the password", func(t beginner) error {
		return t.opensSQL(func(c *driver.Config) { c.User, c.Passwd = "shop", "sesame" })
	}},
	{"set Monitor to", func(t beginner) error {
		return t.opens(belay.Config{Service: "shop", DB: t.db, Engine: memlock.New(), MonitorToken: "0123456789abcdef"})
	}},

	// Operations.
	{"create it", func(t beginner) error { return t.applies(guard.Insert(&Chair{No: "7"})) }},
	{"add one", func(t beginner) error { return t.applies(guard.Insert(&Coupon{Code: "7"})) }},
	{"add a field", func(t beginner) error {
		return t.applies(guard.Update(&Coupon{ID: 7}, func(*Coupon) error { return nil }))
	}},
	{"name the thing", func(t beginner) error { return t.guard.Do(t.Context(), "", nothing) }},
	{"leave it out", func(t beginner) error { return t.guard.Do(t.Context(), "order:{7", nothing) }},
	{"let the call wait by guard.Wait", func(t beginner) error {
		return t.does(func(context.Context, *gorm.DB) error { return t.does(nothing) }) // one caller while another works
	}},
	{"with Also", func(t beginner) error {
		return t.does(func(ctx context.Context, _ *gorm.DB) error { return t.guard.Do(ctx, "item:1", nothing) })
	}},
	{"use the tx", func(t beginner) error {
		return t.does(func(ctx context.Context, _ *gorm.DB) error {
			return t.db.WithContext(ctx).Create(&Order{No: "7"}).Error
		})
	}},
	{"with its ctx", func(t beginner) error {
		return t.does(func(_ context.Context, tx *gorm.DB) error { return guard.Insert(&Order{No: "7"}).Run(t.Context(), tx) })
	}},
	{"return nil from the operation", func(t beginner) error {
		return t.does(func(_ context.Context, tx *gorm.DB) error { return tx.Commit().Error })
	}},
	{"use Create or an update", func(t beginner) error {
		testdb.WantNil(t, t.db.AutoMigrate(&Chair{}))
		return t.does(func(_ context.Context, tx *gorm.DB) error { return tx.Save(&Chair{ID: 7}).Error })
	}},
	{"leave it out", func(t beginner) error { return t.does(nothing, guard.Combine()) }},
	{"another library", func(t beginner) error {
		s := teststack.StartRedis(t, "")
		s.Must("set", "order:7", "as redsync does")
		return t.locks("redis://"+s.Addr, "order:7")
	}},
	{"call Close when", func(t beginner) error {
		testdb.WantNil(t, t.guard.Close(t.Context()))
		return t.does(nothing)
	}},
	{"call SetDefault", func(t beginner) error { return guard.Do(t.Context(), "order:7", nothing) }},

	// Requests and messages.
	{"call once.Migrate", func(t beginner) error {
		return t.serves(once.Request{Operation: "pay", Scope: once.Anyone, ID: "1"})
	}},
	{"set it to who sends the request", func(t beginner) error { return t.serves(once.Request{Operation: "pay", ID: "1"}) }},
	{"set it to the id that the sender repeats", func(t beginner) error {
		return t.serves(once.Request{Operation: "pay", Scope: once.Anyone})
	}},
	{"set it to a function", func(t beginner) error { _, err := httpguard.New(t.guard, httpguard.Config{}); return err }},
	{"needs a header Idempotency-Key", func(t beginner) error {
		guarded, err := httpguard.New(t.guard, httpguard.Config{Principal: func(*http.Request) (string, error) { return "ann", nil }})
		testdb.WantNil(t, err)
		w := httptest.NewRecorder()
		guarded(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/pay", nil))
		return errors.New(strings.TrimSpace(w.Body.String()))
	}},
	{"its producer must set one", func(t beginner) error {
		i, err := inbox.New(t.guard, inbox.Config{Consumer: "mails"})
		testdb.WantNil(t, err)
		_, err = i.Handle(t.Context(), inbox.Message{}, nothing)
		return err
	}},
	{"call relay.Migrate", func(t beginner) error { return t.applies(guard.Send(guard.Message{Topic: "mail"})) }},
}

// TestMistakes: who makes one of the commonest mistakes reads what to do. The texts are those of
// docs/mistakes.md, where … stands for what differs from run to run.
func TestMistakes(t *testing.T) {
	page, err := os.ReadFile("docs/mistakes.md")
	testdb.WantNil(t, err)
	first, _, _ := strings.Cut(string(page), "\n## Every error\n")
	rows := regexp.MustCompile("(?m)^\\| (.*) \\| `(.*)` \\|$").FindAllStringSubmatch(first, -1)
	if len(rows) != len(mistakes) {
		t.Fatalf("docs/mistakes.md has %d mistakes, the test %d", len(rows), len(mistakes))
	}
	for i, m := range mistakes {
		t.Run(rows[i][1], func(t *testing.T) {
			err := m.make(newBeginner(t))
			if err == nil || !strings.Contains(err.Error(), m.do) {
				t.Fatalf("error is %v, want one with %q", err, m.do)
			}
			text := strings.ReplaceAll(regexp.QuoteMeta(rows[i][2]), "…", ".+")
			if !regexp.MustCompile("^" + text + "$").MatchString(err.Error()) {
				t.Errorf("docs/mistakes.md has\n%s\nand the error is\n%v", rows[i][2], err)
			}
		})
	}
}
