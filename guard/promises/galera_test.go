package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// galera returns instances on three nodes of a cluster that share their locks. Whether the
// nodes wait for each other says wait, of wsrep_sync_wait.
func galera(t *testing.T, wait string) (nodes []*env) {
	t.Helper()
	for i, dsn := range teststack.Galera(t) {
		dsn += "&wsrep_sync_wait=" + wait
		db := testdb.OpenMySQL(t, dsn)
		e := &env{t: t, db: db, open: func(opts ...gorm.Option) *gorm.DB { return testdb.OpenMySQL(t, dsn, opts...) }}
		if i == 0 {
			wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
			e.Guard = guardtest.New(t, db)
		} else {
			wantNil(t, db.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error) // until the tables are here
			e.Guard = &guardtest.Guard{Guard: nodes[0].Peer(t, db)}
		}
		nodes = append(nodes, e)
	}
	return nodes
}

// eachWait runs f on nodes that do not wait for each other, as by default, and on such as do.
func eachWait(t *testing.T, f func(t *testing.T, nodes []*env, waits bool)) {
	for _, wait := range []string{"0", "1"} {
		t.Run("wsrep_sync_wait="+wait, func(t *testing.T) { f(t, galera(t, wait), wait == "1") })
	}
}

// warned is a logger that knows what it is warned of.
type warned struct {
	logger.Interface
	text string
}

func (w *warned) Warn(_ context.Context, format string, args ...any) {
	w.text += fmt.Sprintf(format, args...)
}

func (w *warned) of(what string) bool { return strings.Contains(w.text, what) }

// TestGaleraHandOver: a repeat on another node, which may be behind, is a repeat, and what
// the previous holder has updated there is no lock failure.
func TestGaleraHandOver(t *testing.T) {
	eachWait(t, func(_ *testing.T, nodes []*env, _ bool) { handOvers(nodes, 100) })
}

// TestGaleraOverlap: that a lock has failed is told, on nodes that are behind, too. Nothing
// is written twice.
func TestGaleraOverlap(t *testing.T) {
	eachWait(t, func(t *testing.T, nodes []*env, _ bool) {
		first, second := nodes[0], nodes[1]
		first.create(&Stock{ID: 1, Left: 9})
		steal := first.thief(second)
		err := first.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			steal("order:a", guard.Insert(&Order{No: "a"}))
			return guard.Insert(&Order{No: "a", Amount: 1}).Run(ctx, tx)
		}, guard.Protects(&Order{No: "a"}))
		if refused, _ := errors.AsType[*mysql.MySQLError](err); !errors.Is(err, guard.ErrIntercepted) && (refused == nil || refused.Number != 1213) {
			t.Errorf("the insert ended with %v, want a conflict, or a COMMIT that is refused like a deadlock", err)
		}
		steal = first.thief(second)
		err = first.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			steal("sku:1", guard.Update(&Stock{ID: 1}, take))
			return take(s)
		}))
		left := map[bool]int{true: 7, false: 8}[err == nil]
		testwait.Until(t, "all is applied here", func() bool { return first.count(&Order{}) == 1 && first.stock(1).Left == left })
		events := make(map[string]int)
		for _, ev := range first.Events.All() {
			events[ev.Key]++
		}
		if events["order:a"] != 1 || events["sku:1"] != 1 {
			t.Errorf("events are %+v, want one for each key", events)
		}
	})
}

// TestCheckOfGalera: a node that is behind is worth a warning.
func TestCheckOfGalera(t *testing.T) {
	eachWait(t, func(t *testing.T, nodes []*env, waits bool) {
		heard := &warned{Interface: logger.Discard}
		wantNil(t, dbguard.Check(bg, nodes[0].db.Session(&gorm.Session{Logger: heard}), &Stock{}))
		if heard.of("wsrep_sync_wait") == waits {
			t.Errorf("nodes wait: %t, warned of %q", waits, heard.text)
		}
	})
}

// TestGaleraSameRequest: the same request on two nodes, under other keys, takes effect once.
// The other call is a repeat, or is to come again, though the cluster refuses it no earlier
// than at its COMMIT.
func TestGaleraSameRequest(t *testing.T) {
	eachWait(t, func(t *testing.T, nodes []*env, _ bool) {
		first, second := nodes[0], nodes[1]
		wantNil(t, once.Migrate(bg, first.db))
		wantNil(t, second.db.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
		first.create(&Stock{ID: 1, Left: 999}, &Stock{ID: 2, Left: 999})
		wantNil(t, second.db.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
		const tries = 20
		for i := range tries {
			r := request(fmt.Sprint(i))
			err := first.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
				if err := second.Do(bg, "order:b", takeOne(1), guard.For(r)); err != nil || i%2 == 0 {
					return err
				}
				return takeOne(2)(ctx, tx)
			}, guard.For(r))
			if !errors.Is(err, guard.ErrBusy) && !errors.Is(err, guard.ErrDuplicate) {
				t.Errorf("the call that came second ended with %v, want ErrBusy or ErrDuplicate", err)
			}
			wantNil(t, first.db.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
			wantIs(t, first.Do(bg, "order:a", first.never(), guard.For(r)), guard.ErrDuplicate)
		}
		if one, two := second.stock(1).Left, second.stock(2).Left; one != 999-tries || two != 999 {
			t.Errorf("left are %d and %d, want all that was taken, but by the second calls nothing", one, two)
		}
	})
}

// TestGaleraRefusedForAnotherRow: a request whose COMMIT the cluster refuses for a row, and not
// for its claim, may be made again at once: nobody has it, and nobody waits for it under the lock.
func TestGaleraRefusedForAnotherRow(t *testing.T) {
	eachWait(t, func(t *testing.T, nodes []*env, _ bool) {
		first, second := nodes[0], nodes[1]
		wantNil(t, once.Migrate(bg, first.db))
		first.create(&Stock{ID: 1, Left: 99})
		wantNil(t, second.db.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
		err := first.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Exec("UPDATE stocks SET `left` = 7 WHERE id = 1").Error; err != nil {
				return err
			}
			return second.Do(bg, "order:b", takeOne(1))
		}, guard.For(request("a")), guard.Wait(2*time.Second))
		if !dbtx.Retryable(err) || errors.Is(err, guard.ErrBusy) {
			t.Errorf("the call ended with %v, want the refusal of the cluster alone", err)
		}
		wantNil(t, first.Do(bg, "order:a", takeOne(1), guard.For(request("a")), guard.Retries(3)))
	})
}
