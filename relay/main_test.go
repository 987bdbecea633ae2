package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

var bg = context.Background()

// each runs f on every database, with the tables.
func each(t *testing.T, f func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) { f(t, migrated(t, open())) })
}

func openSQLite(tb testing.TB) *gorm.DB {
	tb.Helper()
	return migrated(tb, testdb.OpenSQLite(tb, filepath.Join(tb.TempDir(), "relay.db")))
}

func migrated(tb testing.TB, db *gorm.DB) *gorm.DB {
	tb.Helper()
	if err := relay.Migrate(bg, db); err != nil {
		tb.Fatal(err)
	}
	return db
}

// store stores messages, all in one transaction.
func store(tb testing.TB, db *gorm.DB, rows ...message.Row) {
	tb.Helper()
	base, err := message.Open(db, "test")
	if err == nil {
		err = base.InTx(bg, func(c sqldb.Conn) error { return message.Insert(bg, c, base.Dialect, rows) })
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// row is the nth message of a key.
func row(key string, n int) message.Row {
	return message.Row{MessageID: fmt.Sprintf("%s/%d", key, n), Key: key, Topic: "sale", Body: []byte(fmt.Sprint(n))}
}

// rowsOf are the messages of a key, from 0 on.
func rowsOf(key string, n int) (rows []message.Row) {
	for i := range n {
		rows = append(rows, row(key, i))
	}
	return rows
}

// start starts a relay that is stopped when the test ends.
func start(tb testing.TB, db *gorm.DB, cfg relay.Config) *relay.Relay {
	tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := relay.New(db, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close(bg) })
	return r
}

// to is a quick relay with one way out.
func to(p relay.Publisher) relay.Config {
	return relay.Quick(relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: p}}})
}

// A recorder is a publisher that keeps the ids of what it was given and took.
type recorder struct {
	mu    sync.Mutex
	took  []string
	asked []string
	fail  func(relay.Message) error
}

func (r *recorder) Publish(_ context.Context, m relay.Message) error {
	r.mu.Lock()
	fail := r.fail
	r.asked = append(r.asked, m.ID)
	r.mu.Unlock()
	if fail != nil {
		if err := fail(m); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, m.ID)
	return nil
}

func (r *recorder) failWith(fail func(relay.Message) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

func (r *recorder) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.took)
}

func (r *recorder) tries() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// of returns the ids of one key.
func of(ids []string, key string) (list []string) {
	for _, id := range ids {
		if len(id) > len(key) && id[:len(key)+1] == key+"/" {
			list = append(list, id)
		}
	}
	return list
}

func idsOf(key string, n int) (ids []string) {
	for _, r := range rowsOf(key, n) {
		ids = append(ids, r.MessageID)
	}
	return ids
}

func count(tb testing.TB, db *gorm.DB, table string) (n int) {
	tb.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM " + table).Scan(&n).Error; err != nil {
		tb.Fatal(err)
	}
	return n
}

// emptied waits until all messages are sent and deleted.
func emptied(tb testing.TB, db *gorm.DB) {
	tb.Helper()
	testwait.Gone(tb, "messages", func() int { return count(tb, db, "belay_message") })
}
