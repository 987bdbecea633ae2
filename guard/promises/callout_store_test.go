package promises_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// TestResultAwaitsTheDatabase: the database takes no connections when the provider has answered. The answer
// is stored when it takes some, and nobody calls again.
func TestResultAwaitsTheDatabase(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, k := payingOver(t, dsn(t))
			db := e.open()
			pool, err := db.DB()
			wantNil(t, err)
			pool.SetMaxIdleConns(0) // each statement connects
			g := e.over(db, time.Minute)
			e.meantime = func(context.Context) { k.Away.Store(true) }
			done := make(chan error, 1)
			go func() {
				_, err := e.runBy(g, "a", 5)
				done <- err
			}()
			testwait.Until(t, "it tries again and again", func() bool { return k.Resets.Load() > 30 || len(done) > 0 })
			k.Away.Store(false)
			if err := <-done; err != nil && !errors.Is(err, guard.ErrPending) {
				t.Fatal(err)
			}
			e.forget()
			e.settles(1)
		})
	}
}

// TestResultOnALaggingNode: statements that settle and store the answer of the provider do not find the
// row of the call, as on a node that has not applied it yet. The answer is not taken for that of another
// attempt: it is settled, or stored.
func TestResultOnALaggingNode(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		for _, tt := range []struct {
			name     string
			settling int32 // statements that find no row
			pending  bool
		}{
			{"at first", 1, false},
			{"as long as it settles", 99, true},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				e, k := payingOver(t, dsn(t))
				db := e.open()
				pool, err := db.DB()
				wantNil(t, err)
				pool.SetMaxIdleConns(0) // no statement is prepared before
				var settling, storing atomic.Int32
				stop := k.Interrupt(func(packet []byte) {
					if bytes.Contains(packet, []byte("DELETE FROM belay_pending")) && settling.Add(1) <= tt.settling {
						copy(packet[bytes.LastIndexByte(packet, '='):], "<")
					}
					if i := bytes.Index(packet, []byte("UPDATE belay_pending SET answered")); i >= 0 && storing.Add(1) <= 5 {
						copy(packet[i+bytes.Index(packet[i:], []byte("= 0")):], "< 0")
					}
				})
				_, err = e.runBy(e.over(db, time.Minute), "a", 5)
				stop()
				if errors.Is(err, guard.ErrPending) != tt.pending || err != nil && !tt.pending {
					t.Errorf("error is %v, want that it is pending: %v", err, tt.pending)
				}
				if tt.pending {
					e.settles(1)
				}
				e.paid()
			})
		}
	}
}

// TestSettleAwaitsTheKeys: another buyer holds the item when the provider has answered. Settle waits for it
// as long as Wait says; without Wait the answer is stored.
func TestSettleAwaitsTheKeys(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		if e.db.Name() == "sqlite" { // one transaction at a time
			return
		}
		var o beforeDo
		g, _ := e.noticing(&o)
		held, other := make(chan struct{}), make(chan error, 2)
		e.meantime = func(context.Context) {
			release := make(chan struct{})
			o.f = func() { close(release) } // when the transaction that settles begins
			go func() {
				other <- e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
					held <- struct{}{}
					<-release
					return nil
				})
			}()
			<-held
		}
		got, err := e.buy().Run(bg, g, printed("a", "5"), 5, guard.Wait(time.Minute), guard.Also("sku:1", &Stock{ID: 1}))
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		wantNil(e.t, <-other)
		e.paid()
		e.meantime = func(context.Context) {
			go func() {
				other <- e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
					held <- struct{}{}
					<-held
					return nil
				})
			}()
			<-held
		}
		_, err = e.runBy(g, "b", 5)
		wantIs(e.t, err, guard.ErrPending)
		wantIs(e.t, err, guard.ErrBusy)
		held <- struct{}{}
		wantNil(e.t, <-other)
		if open := e.pending(); len(open) != 1 || !open[0].Answered {
			e.t.Errorf("pending are %+v, want one with an answer", open)
		}
	})
}

// TestGaleraResult: when the provider answers, the next connection leads to a node that has not applied the
// reservation yet, and the client may have gone. The answer is settled or stored.
func TestGaleraResult(t *testing.T) {
	for _, waits := range []string{"0", "1"} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("wsrep_sync_wait=%s, leaves %t", waits, leaves), func(t *testing.T) {
				dsns := teststack.Galera(t)
				var at atomic.Int32
				mysql.RegisterDialContext("wanders", func(ctx context.Context, _ string) (net.Conn, error) {
					var d net.Dialer
					return d.DialContext(ctx, "tcp", testdb.AddrOf(t, dsns[at.Load()]))
				})
				db := testdb.OpenMySQL(t, strings.Replace(dsns[0], "@tcp(", "@wanders(", 1)+"&wsrep_sync_wait="+waits)
				pool, err := db.DB()
				wantNil(t, err)
				pool.SetMaxIdleConns(0) // each transaction connects
				wantNil(t, errors.Join(db.AutoMigrate(&Order{}, &Stock{}), once.Migrate(bg, db), once.MigrateCalls(bg, db)))
				wantNil(t, db.Exec("CREATE TABLE bulk (n INT PRIMARY KEY, filler VARCHAR(200))").Error)
				e := &paying{env: &env{t: t, db: db, Guard: guardtest.New(t, db)}}
				e.create(&Stock{ID: 1, Left: 9})
				behind := testdb.OpenMySQL(t, dsns[1])
				wantNil(t, behind.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
				wantNil(t, db.Exec("INSERT INTO bulk SELECT seq, REPEAT('x', 200) FROM seq_1_to_300000").Error) // which the others apply for a while
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				e.meantime = func(context.Context) {
					e.meantime = nil
					at.Store(1)
					if leaves {
						cancel()
					}
				}
				_, err = e.buy().Run(ctx, e.Guard.Guard, printed("a", "5"), 5)
				if err != nil && !errors.Is(err, guard.ErrPending) {
					t.Errorf("error is %v", err)
				}
				wantNil(t, behind.Exec("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1").Error)
				if e.forget(); err != nil {
					e.settles(1)
				}
				e.paid()
			})
		}
	}
}
