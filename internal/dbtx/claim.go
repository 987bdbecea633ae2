package dbtx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/random"
	"github.com/belaygo/belay/internal/wait"
)

// ErrClaimed is returned by Claim and ClaimAll while another transaction, which has not ended,
// has inserted the row.
var ErrClaimed = errors.New("dbguard: another transaction has the claim")

// Claim inserts a row that stands for the transaction's work, before that is done: no
// other transaction with that claim gets beyond its own. key protects the row, which is
// not deleted while the outcome of a COMMIT may be looked for.
//
// Claim waits for another transaction that has inserted the row, for patience at most, but
// at least for the server's shortest wait: see dialect.LockWait. After any error the
// transaction is to be rolled back.
func (t *Tx) Claim(key string, model any, patience time.Duration) error {
	if err := t.protectClaim(key, model); err != nil {
		if t.readsLock() && errors.Is(err, context.DeadlineExceeded) && t.ctx.Err() == nil {
			return fmt.Errorf("%w: %w", ErrClaimed, err)
		}
		return err
	}
	until := time.Now().Add(patience)
	for {
		err := t.insertClaims(model, time.Until(until))
		if !dialect.IsLocked(err) {
			return err
		}
		if t.dialect.Aborts || t.Poisoned() != nil || !time.Now().Before(until) {
			return fmt.Errorf("%w: %w", ErrClaimed, err)
		}
		if err := wait.Sleep(t.ctx, claimPause+random.Duration(claimPause), nil); err != nil {
			return err
		}
	}
}

// claimPause is the least time between two tries to insert a claim, and half of the
// longest. Transactions that waited in InnoDB instead would be its deadlock when the one
// they wait for rolls back.
const claimPause = 20 * time.Millisecond

// readsLock reports whether a read may wait for another transaction, as with MySQL's
// SERIALIZABLE.
func (t *Tx) readsLock() bool { return t.dialect.Name == "mysql" && !t.conn.Session.Snapshot }

// beside is a claim with rows of that name in other tables.
type beside interface{ Beside() []string }

func (t *Tx) protectClaim(key string, model any) error {
	defer t.Under(key)()
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	if claim, ok := model.(beside); ok {
		for _, table := range claim.Beside() {
			if err := t.checkPrimary(m, table); err != nil {
				return err
			}
		}
	}
	return t.protectPrimary(m, protected.Row{Kept: true})
}

// ClaimAll inserts rows that ProtectEach has named as claims, in one statement: a slice of
// models. It waits for another transaction that has inserted one of them only for the
// server's shortest wait. After any error the transaction is to be rolled back.
func (t *Tx) ClaimAll(models any) error {
	err := t.insertClaims(models, 0)
	if dialect.IsLocked(err) {
		return fmt.Errorf("%w: %w", ErrClaimed, err)
	}
	return err
}

// insertClaims inserts claims. They are sent with what waits.
func (t *Tx) insertClaims(models any, patience time.Duration) error {
	bound := t.dialect.LockWait(t.conn.Session, patience)
	deferring := t.Deferring()
	if deferring {
		t.surround(bound)
	} else if bound.During != "" {
		t.conn.Use()
		if _, err := t.conn.SQL().ExecContext(t.ctx, bound.Set(bound.During)); err != nil {
			t.Learn(err)
			return fmt.Errorf("bound the wait for the claim: %w", err)
		}
	}
	returned := bound.During == ""
	defer func() {
		if !returned { // a callback has panicked: the setting must not stay
			t.conn.Discard()
		}
	}()
	err := t.front.Insert(models, bound.Prefix)
	returned = true
	if deferring {
		if withheld := t.conn.EndSurround(); withheld && err == nil || !t.conn.OnlyClaims() {
			return t.spoken()
		}
	}
	if bound.During == "" || deferring || err != nil && t.dialect.Aborts { // it is restored, or the ROLLBACK does that
		return err
	}
	if restored := t.exec(t.conn, bound.Set(bound.After)); restored != nil {
		t.Poison(restored)
		t.conn.Discard()
		return errors.Join(err, restored)
	}
	return err
}

// Beside runs f, which sends a statement of Belay that no statement of the program depends
// on, on the transaction's connection. An error of it poisons the transaction.
func (t *Tx) Beside(f func(ctx context.Context, c Execer, database string) error) error {
	if err := t.conn.Take(t.ctx); err != nil {
		return err
	}
	defer t.conn.Give()
	if t.conn.SettleAll() {
		t.Poison(pinned.ErrRowsOpen)
	} else {
		_ = t.LeaveRoutine() // which poisons
	}
	if err := t.usable(); err != nil {
		return err
	}
	var err error
	if t.conn.Session.MarksWrites() {
		err = t.mark()
	}
	if err == nil {
		err = f(t.ctx, last{t}, t.dialect.Name)
	}
	if err != nil {
		t.Learn(err)
		t.Poison(err)
	}
	return err
}

// OnlyClaimed reports whether the transaction has written only a claim.
func (t *Tx) OnlyClaimed() bool { return t.journal.OnlyKept() }
