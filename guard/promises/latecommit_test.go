package promises_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// TestLateCommit: a COMMIT takes effect after its client has lost the connection,
// the lock and, to the next holder, the key. Both holders report it, and the next
// one's write is refused.
func TestLateCommit(t *testing.T) {
	const key = "order:a"
	e, k := linked(t)
	other := e.Peer(t, e.db)
	commit := k.Delay()
	result := make(chan error, 1)
	go func() { result <- e.Apply(bg, key, guard.Insert(&Order{No: "a", Amount: 1})) }()
	<-commit.Retried
	e.Forget(key)

	err := other.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
		var n int64
		wantNil(t, tx.Model(&Order{}).Where("no = ?", "a").Count(&n).Error)
		if n != 0 {
			t.Errorf("%d rows before the commit, want none", n)
		}
		commit.Deliver()
		return guard.Insert(&Order{No: "a", Amount: 2}).Run(ctx, tx)
	})
	wantIs(t, err, guard.ErrIntercepted)
	if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key); ev.HolderAtConflict != notify.HolderSelf {
		t.Errorf("holder at the conflict is %q, want self", ev.HolderAtConflict)
	}

	commit.Open()
	wantNil(t, <-result) // the key that the database made proves it
	if events := e.Events.All(); len(events) != 2 || events[1].Verdict != notify.VerdictLost || events[1].Outcome != notify.OutcomeCommitted {
		t.Errorf("events are %+v, want one more, of a lost lock and a commit", events)
	}
	var row Order
	wantNil(t, e.db.Take(&row, "no = ?", "a").Error)
	if row.Amount != 1 {
		t.Errorf("row is %+v, want the first one's", row)
	}
}
