package message_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// each runs f on every database.
func each(t *testing.T, f func(t *testing.T, db sqldb.DB, pool *gorm.DB)) {
	t.Helper()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		pool := open()
		db, err := message.Open(pool, "test")
		if err != nil {
			t.Fatal(err)
		}
		f(t, db, pool)
	})
}

// migrated runs f where the tables are.
func migrated(t *testing.T, f func(t *testing.T, db sqldb.DB, pool *gorm.DB)) {
	each(t, func(t *testing.T, db sqldb.DB, pool *gorm.DB) {
		if err := message.Migrate(bg, db); err != nil {
			t.Fatal(err)
		}
		f(t, db, pool)
	})
}

// insert stores rows in a transaction.
func insert(db sqldb.DB, rows ...message.Row) error {
	return db.InTx(bg, func(c sqldb.Conn) error { return message.Insert(bg, c, db.Dialect, rows) })
}

func row(id string) message.Row {
	return message.Row{MessageID: id, Key: "item:7", Topic: "sale.made", Body: []byte("body of " + id)}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db sqldb.DB, pool *gorm.DB) {
		if err := message.Check(bg, db); err == nil || !strings.Contains(err.Error(), "relay.Migrate") {
			t.Errorf("Check without tables: %v", err)
		}
		if err := insert(db, row("1")); err == nil || !strings.Contains(err.Error(), "relay.Migrate") {
			t.Errorf("Insert without tables: %v", err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := message.Migrate(bg, db); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := message.Check(bg, db); err != nil {
			t.Error(err)
		}
		if err := pool.Exec("DELETE FROM belay_lane WHERE lane = 5").Error; err != nil {
			t.Fatal(err)
		}
		if err := message.Check(bg, db); err == nil || !strings.Contains(err.Error(), "31 lanes") {
			t.Errorf("Check without a lane: %v", err)
		}
		if err := errors.Join(message.Migrate(bg, db), message.Check(bg, db)); err != nil {
			t.Error(err)
		}
	})
}

// What is stored comes back as it was, whatever characters it has.
func TestInsert(t *testing.T) {
	t.Parallel()
	migrated(t, func(t *testing.T, db sqldb.DB, _ *gorm.DB) {
		rows := []message.Row{
			{MessageID: "1", Key: "order:中国 🧗 \x00\xff ", Topic: "sale.made", Headers: map[string]string{"a": "é🧗"}, Body: []byte("\x00\xff")},
			{MessageID: "2", Topic: "mail"},
		}
		if err := insert(db, rows...); err != nil {
			t.Fatal(err)
		}
		var ids, keys, headers []string
		var bodies [][]byte
		err := db.Query(bg, `SELECT message_id, message_key, headers, "body" FROM belay_message ORDER BY id`, nil, func(scan sqldb.Scan) error {
			var id, header string
			var key, body []byte
			err := scan(&id, &key, &header, &body)
			ids, keys, headers, bodies = append(ids, id), append(keys, string(key)), append(headers, header), append(bodies, body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ids, []string{"1", "2"}) || keys[0] != rows[0].Key || keys[1] != "" ||
			headers[0] != `{"a":"\u00e9\ud83e\uddd7"}` || headers[1] != "" || string(bodies[0]) != "\x00\xff" || len(bodies[1]) != 0 {
			t.Errorf("stored: %q %q %q %q", ids, keys, headers, bodies)
		}
	})
}

// A message that is there already is on its way: it stays as it is, beside one that is new.
func TestRepeat(t *testing.T) {
	t.Parallel()
	migrated(t, func(t *testing.T, db sqldb.DB, _ *gorm.DB) {
		again := row("1")
		again.Body = []byte("another time")
		if err := errors.Join(insert(db, row("1")), insert(db, again, row("2"))); err != nil {
			t.Fatal(err)
		}
		if got := bodies(t, db); !reflect.DeepEqual(got, []string{"body of 1", "body of 2"}) {
			t.Errorf("stored: %q", got)
		}
	})
}

// Of two transactions with one id the second waits for the first, and stores the message if that
// is rolled back.
func TestRepeatAfterRollback(t *testing.T) {
	t.Parallel()
	migrated(t, func(t *testing.T, db sqldb.DB, _ *gorm.DB) {
		undo := errors.New("undo")
		if err := db.InTx(bg, func(c sqldb.Conn) error {
			return errors.Join(message.Insert(bg, c, db.Dialect, []message.Row{row("1")}), undo)
		}); !errors.Is(err, undo) {
			t.Fatal(err)
		}
		if err := insert(db, row("1")); err != nil {
			t.Fatal(err)
		}
		if got := bodies(t, db); !reflect.DeepEqual(got, []string{"body of 1"}) {
			t.Errorf("stored: %q", got)
		}
	})
}

// Messages beyond one INSERT keep their order.
func TestManyRows(t *testing.T) {
	t.Parallel()
	migrated(t, func(t *testing.T, db sqldb.DB, _ *gorm.DB) {
		var rows []message.Row
		var want []string
		for n := range 1100 {
			r := row(fmt.Sprint(n))
			if n%100 == 0 {
				r.Body = append(r.Body, make([]byte, message.MaxBody-len(r.Body))...)
			}
			rows, want = append(rows, r), append(want, fmt.Sprintf("body of %d", n))
		}
		if err := insert(db, rows...); err != nil {
			t.Fatal(err)
		}
		if got := bodies(t, db); !reflect.DeepEqual(got, want) {
			t.Errorf("stored: %d rows in another order", len(got))
		}
	})
}

func bodies(t *testing.T, db sqldb.DB) (all []string) {
	t.Helper()
	err := db.Query(bg, `SELECT "body" FROM belay_message ORDER BY id`, nil, func(scan sqldb.Scan) error {
		var body []byte
		err := scan(&body)
		all = append(all, strings.TrimRight(string(body), "\x00"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refuses fails a test that sends a statement.
type refuses struct{ message.Execer }

func TestInvalid(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	for what, rows := range map[string][]message.Row{
		"no id":         {{Topic: "a"}},
		"long id":       {{MessageID: long, Topic: "a"}},
		"blank in id":   {{MessageID: "1 ", Topic: "a"}},
		"accent in id":  {{MessageID: "é", Topic: "a"}},
		"no topic":      {{MessageID: "1"}},
		"long key":      {{MessageID: "1", Topic: "a", Key: long}},
		"large body":    {{MessageID: "1", Topic: "a", Body: make([]byte, message.MaxBody+1)}},
		"large headers": {{MessageID: "1", Topic: "a", Headers: map[string]string{"a": strings.Repeat("é", 4000)}}},
		"one id twice":  {{MessageID: "1", Topic: "a"}, {MessageID: "1", Topic: "b"}},
	} {
		if err := message.Insert(bg, refuses{}, sqldb.Dialect{}, rows); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("%s: error is %v", what, err)
		}
	}
}

// The lane of a key never changes, and a message without a key has that of its id.
func TestLane(t *testing.T) {
	t.Parallel()
	if got := message.Lane("item:7"); got != 22 {
		t.Errorf("lane of item:7 is %d", got)
	}
	seen := make(map[int]bool)
	for n := range 1000 {
		seen[message.Row{MessageID: fmt.Sprint(n)}.Sum().Lane()] = true
	}
	if len(seen) != message.Lanes {
		t.Errorf("1000 messages without a key are in %d lanes", len(seen))
	}
	if (message.Row{MessageID: "7"}).Sum() == (message.Row{MessageID: "8", Key: "7"}).Sum() {
		t.Error("a key and an id have one sum")
	}
}
