package promises_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/pgsync"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// canaryAt returns a service on a pair, whose address leads to node 0 at first.
func canaryAt(t *testing.T, p *teststack.Pair, params string) (*env, *testdb.Link) {
	t.Helper()
	e, address := atOneAddress(t, p, params)
	e.create(&Stock{ID: 1, Left: 1e6})
	e.inside().LookAgainAfter(2 * time.Second) // a look fails until the replica is back, and gives up after 30
	return e, address
}

// nextLook serves requests until the database answers again, and waits for the look that follows.
func (e *env) nextLook(id string) {
	e.t.Helper()
	_, before := e.inside().Looks()
	n := 0
	testwait.Until(e.t, "the database answers again", func() bool {
		n++
		return e.Do(bg, "stock:1", takeOne(1), guard.For(request(fmt.Sprint(id, n)))) == nil
	})
	e.wantLook(before)
}

// TestStandbyPromotedWithLoss: an asynchronous replica is promoted that lacks commits. They are
// reported once, also if the pair is healed.
func TestStandbyPromotedWithLoss(t *testing.T) {
	p := teststack.Standby(t, "lossy")
	e, address := canaryAt(t, p, "&synchronous_commit=local")
	e.serve(0, 3)
	e.awaitStandby()
	p.Run(t, "kill", 1)
	e.serve(3, 8)
	p.Run(t, "kill", 0)
	p.Run(t, "promote", 1)
	address.Lead(p.Addr(t, 1))
	e.nextLook("next ")
	ev := e.wantLost(5)
	if ev.Lost.Server == ev.Lost.Now {
		t.Errorf("both servers are %s", ev.Lost.Now)
	}
	p.Heal(t)
	e.serve(10, 20)
	e.wantLost(5)
}

// awaitStandby waits until the standby has what was committed.
func (e *env) awaitStandby() {
	e.t.Helper()
	wantNil(e.t, e.db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Exec("SET LOCAL synchronous_commit = on").Error, tx.Exec(pgsync.Message).Error)
	}))
}

// TestStandbyPromotedWithoutLoss: a promotion that loses nothing is looked at, and no news.
func TestStandbyPromotedWithoutLoss(t *testing.T) {
	p := teststack.Standby(t, "lossless")
	e, address := canaryAt(t, p, "")
	e.serve(0, 8)
	p.Run(t, "kill", 0)
	p.Run(t, "promote", 1)
	address.Lead(p.Addr(t, 1))
	e.nextLook("next ")
	p.Heal(t)
	e.serve(10, 20)
	e.wantNoEvent()
}

// TestSemiSyncSwitchedOver: a planned switchover is looked at, and no news.
func TestSemiSyncSwitchedOver(t *testing.T) {
	p := teststack.SemiSync(t, "planned")
	e, address := canaryAt(t, p, "&timeout=2s&readTimeout=5s")
	e.serve(0, 8)
	p.Run(t, "promote", 1)
	address.Lead(p.Addr(t, 1))
	e.nextLook("next ")
	e.wantNoEvent()
}

func TestStandbyRestored(t *testing.T) { restored(t, teststack.Standby(t, "restored"), "") }
func TestSemiSyncRestored(t *testing.T) {
	restored(t, teststack.SemiSync(t, "restored"), "&timeout=2s&readTimeout=5s")
}

// restored: a restart loses nothing, and a backup that is restored loses what came after it, which is
// reported once.
func restored(t *testing.T, p *teststack.Pair, params string) {
	e, _ := canaryAt(t, p, params)
	e.serve(0, 3)
	restore := p.BackUp(t)
	e.nextLook("restarted ")
	e.wantNoEvent()
	e.serve(3, 8)
	restore()
	e.nextLook("restored ")
	ev := e.wantLost(6) // with the one after the backup
	if ev.Lost.LastAt.After(time.Now()) || ev.Lost.Server != ev.Lost.Now {
		t.Errorf("lost = %+v", ev.Lost)
	}
	e.serve(10, 20)
	e.wantLost(6)
}
