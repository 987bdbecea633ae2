package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// stalled calls f, on each kind of server, with a transaction whose COMMIT the
// server still waits for. living reports whether the session is there.
func stalled(t *testing.T, f func(t *testing.T, tx *Tx, living func() bool)) {
	type Ticket struct {
		ID uint
		No string `gorm:"size:16;uniqueIndex"`
	}
	for name, server := range map[string]struct {
		dsn   func(testing.TB) string
		open  func(testing.TB, string, ...gorm.Option) *gorm.DB
		count string
	}{
		"mysql":    {teststack.MySQL, testdb.OpenMySQL, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?"},
		"postgres": {teststack.Postgres, testdb.OpenPostgres, "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = ?"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := server.open(t, k.Through(t, dsn))
			if err := errors.Join(Install(db), db.AutoMigrate(&Ticket{})); err != nil {
				t.Fatal(err)
			}
			tx, err := Begin(context.Background(), db, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(tx.Protect(&Ticket{No: "a"}), tx.DB().Create(&Ticket{No: "a"}).Error); err != nil {
				t.Fatal(err)
			}
			k.Stall.Store(true)
			if err := tx.Commit(); !errors.Is(err, ErrCommitUnknown) {
				t.Fatalf("error is %v, want %v", err, ErrCommitUnknown)
			}
			f(t, tx, func() bool {
				var n int
				if err := db.Raw(server.count, tx.conn.Session.ID).Scan(&n).Error; err != nil {
					t.Fatal(err)
				}
				return n == 1
			})
		})
	}
}

// TestAnotherServer: the pool leads to another server by now, on which the number
// of the session is anybody's.
func TestAnotherServer(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, living func() bool) {
		tx.conn.Session.Server = "elsewhere:1"
		o, err := tx.Resolve(context.Background())
		if o != Unresolved || err == nil || !strings.Contains(err.Error(), "elsewhere:1") {
			t.Errorf("resolved as %v, %v", o, err)
		}
		if !living() {
			t.Error("a session was killed")
		}
	})
}

// TestNumberAfterRestart: the server has begun to count its sessions anew. One of the same number is
// another client's, also if it is idle and a row is locked for longer than the patience with it.
func TestNumberAfterRestart(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, living func() bool) {
		if tx.dialect.Name != "mysql" {
			return
		}
		tx.conn.Session.Read = time.Now().AddDate(-50, 0, 0)
		ctx, cancel := context.WithTimeout(context.Background(), patience+2*time.Second)
		defer cancel()
		if o, err := tx.Resolve(ctx); o != Unresolved {
			t.Errorf("resolved as %v, %v, and the row is locked", o, err)
		}
		if !living() {
			t.Error("a session was killed")
		}
	})
}

// TestTransactionsOwnSessionIsEnded: the number of the session that a pooler gave first is
// that of another client by now.
func TestTransactionsOwnSessionIsEnded(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, _ func() bool) {
		if tx.dialect.Name != "postgres" {
			return
		}
		stranger, err := tx.pool.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		s, err := tx.dialect.ReadSession(context.Background(), stranger)
		if err != nil {
			t.Fatal(err)
		}
		tx.conn.Session.ID, tx.conn.Session.Started = s.ID, s.Started
		if o, err := tx.Resolve(context.Background()); o != NotCommitted || err != nil {
			t.Errorf("resolved as %v, %v", o, err)
		}
		if err := stranger.PingContext(context.Background()); err != nil {
			t.Errorf("another client's session was ended: %v", err)
		}
	})
}

// TestNumberAfterCrash: the server may have given the number of the transaction to
// another one, which was committed. What looks like a crash may have been a reset of the statistics:
// the session is ended, if it is there.
func TestNumberAfterCrash(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, living func() bool) {
		if tx.dialect.Name != "postgres" {
			return
		}
		if err := tx.pool.QueryRow("SELECT pg_current_xact_id()::text").Scan(&tx.xid); err != nil {
			t.Fatal(err)
		}
		tx.conn.Session.Run = "before the crash"
		if o, err := tx.Resolve(context.Background()); o != NotCommitted {
			t.Errorf("resolved as %v, %v, want not committed: the row is missing", o, err)
		}
		if living() {
			t.Error("the session may still commit")
		}
	})
}

// TestTransactionInProgressIsAwaited: the user may not be shown the session that has the
// transaction.
func TestTransactionInProgressIsAwaited(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, _ func() bool) {
		if tx.dialect.Name != "postgres" {
			return
		}
		other, err := tx.pool.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"CREATE VIEW public.pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity WHERE FALSE",
			"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
		} {
			if _, err := tx.pool.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
		tx.pool.SetMaxIdleConns(-1) // new ones have the path
		if err := other.QueryRow("SELECT pg_current_xact_id()::text").Scan(&tx.xid); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "it is known to be in progress when the time is over", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			o, err := tx.findOut(ctx)
			if o != Unresolved || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("found out %v, %v while it is in progress", o, err)
			}
			return strings.Contains(err.Error(), "in progress")
		})
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		if o, err := tx.findOut(context.Background()); o != NotCommitted || err != nil {
			t.Errorf("found out %v, %v, want not committed", o, err)
		}
	})
}

// TestSessionOfAPoolerIsReadAgain: behind a pooler the connection may have been read before
// the server was restarted, when another session had it. Its transaction is ended all the
// same before its outcome is concluded.
func TestSessionOfAPoolerIsReadAgain(t *testing.T) {
	type Ticket struct {
		ID uint
		No string `gorm:"size:16;uniqueIndex"`
	}
	dsn := teststack.Postgres(t)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, dsn))
	if err := errors.Join(Install(db), db.AutoMigrate(&Ticket{})); err != nil {
		t.Fatal(err)
	}
	for name, stale := range map[string]func(s *dialect.Session){
		"another number":  func(s *dialect.Session) { s.ID++ },
		"the same number": func(s *dialect.Session) { s.Started.Time = s.Started.Time.Add(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := Begin(context.Background(), db, Options{})
			if err != nil {
				t.Fatal(err)
			}
			id := tx.conn.Session.ID
			tx.conn.Session.Run = "0.0 before the restart"
			stale(&tx.conn.Session)
			if err := errors.Join(tx.Protect(&Ticket{No: name}), tx.DB().Create(&Ticket{No: name}).Error); err != nil {
				t.Fatal(err)
			}
			k.Stall.Store(true)
			if err := tx.Commit(); !errors.Is(err, ErrCommitUnknown) {
				t.Fatalf("error is %v, want %v", err, ErrCommitUnknown)
			}
			k.Stall.Store(false)
			if o, err := tx.Resolve(context.Background()); o != NotCommitted || err != nil {
				t.Errorf("resolved as %v, %v", o, err)
			}
			var living int
			if err := db.Raw("SELECT count(*) FROM pg_stat_activity WHERE pid = ?", id).Scan(&living).Error; err != nil || living != 0 {
				t.Errorf("the session may still commit: %d, %v", living, err)
			}
		})
	}
}

// TestNoStrangerIsEndedWithoutNumbers: a PostgreSQL that does not tell the number of a
// transaction tells nobody which session has it behind a pooler.
func TestNoStrangerIsEndedWithoutNumbers(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, living func() bool) {
		if tx.dialect.Name != "postgres" {
			return
		}
		tx.xid, tx.conn.Session.Numbers = "", false
		tx.database.pooled.Store(true)
		if o, err := tx.Resolve(context.Background()); o != Unresolved || err == nil || !strings.Contains(err.Error(), "pooler") {
			t.Errorf("resolved as %v, %v", o, err)
		}
		if !living() {
			t.Error("a session was ended")
		}
	})
}

// TestFreeRowsEndNoSession: a transaction whose rows are free is over, and its session
// another client's, as behind a pooler.
func TestFreeRowsEndNoSession(t *testing.T) {
	type Ticket struct {
		ID uint
		No string `gorm:"size:16;uniqueIndex"`
	}
	dsn := teststack.MySQL(t)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenMySQL(t, k.Through(t, dsn))
	if err := errors.Join(Install(db), db.AutoMigrate(&Ticket{})); err != nil {
		t.Fatal(err)
	}
	tx, err := Begin(context.Background(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	stranger := strangerOf(t, tx)
	if err := errors.Join(tx.Protect(&Ticket{No: "a"}), tx.DB().Create(&Ticket{No: "a"}).Error); err != nil {
		t.Fatal(err)
	}
	k.Before.Store(true)
	if err := tx.Commit(); !errors.Is(err, ErrCommitUnknown) {
		t.Fatalf("error is %v, want %v", err, ErrCommitUnknown)
	}
	k.Before.Store(false)
	if o, err := tx.Resolve(context.Background()); o != NotCommitted || err != nil {
		t.Errorf("resolved as %v, %v", o, err)
	}
	if err := stranger.PingContext(context.Background()); err != nil {
		t.Errorf("another client's session was ended: %v", err)
	}
}

// strangerOf returns a connection in whose session tx is said to be.
func strangerOf(t *testing.T, tx *Tx) *sql.Conn {
	t.Helper()
	stranger, err := tx.pool.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Close() })
	s, err := tx.dialect.ReadSession(context.Background(), stranger)
	if err != nil {
		t.Fatal(err)
	}
	tx.conn.Session.ID, tx.conn.Session.Read = s.ID, s.Read
	return stranger
}

// TestBusyStrangerIsLeftAlone: the session does something else than to wait for a COMMIT. The
// rows are locked by whoever has the transaction.
func TestBusyStrangerIsLeftAlone(t *testing.T) {
	stalled(t, func(t *testing.T, tx *Tx, living func() bool) {
		if tx.dialect.Name != "mysql" {
			return
		}
		stranger := strangerOf(t, tx)
		asleep, wake := context.WithCancel(context.Background())
		defer wake()
		ended := make(chan error, 1)
		go func() {
			_, err := stranger.ExecContext(asleep, "DO SLEEP(600)")
			ended <- err
		}()
		testwait.Until(t, "the session is busy", func() bool {
			var n int
			query := "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND info LIKE 'DO SLEEP%'"
			return tx.pool.QueryRow(query, tx.conn.Session.ID).Scan(&n) == nil && n == 1
		})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		resolved := make(chan Outcome, 1)
		go func() {
			o, _ := tx.Resolve(ctx)
			resolved <- o
		}()
		testwait.Until(t, "a pooler is noticed", tx.database.pooled.Load)
		cancel()
		if o := <-resolved; o != Unresolved {
			t.Errorf("resolved as %v", o)
		}
		if !living() || len(ended) > 0 {
			t.Error("another client's session was ended")
		}
		if _, err := tx.pool.Exec(fmt.Sprintf("KILL %d", tx.conn.Session.ID)); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("the session was not ended by KILL")
		}
	})
}

// TestOldPostgresIsNoPooler: a PostgreSQL before 13 does not tell the number of a transaction.
func TestOldPostgresIsNoPooler(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	if err := Install(db); err != nil {
		t.Fatal(err)
	}
	tx, err := Begin(context.Background(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx.conn.Session.Numbers = false
	if err := tx.Commit(); err != nil || tx.database.pooled.Load() {
		t.Errorf("committed with %v, taken for a pooler: %t", err, tx.database.pooled.Load())
	}
}
