package promises_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// semiSync returns a service on a MariaDB with a semi-synchronous replica. Both have one
// address, which leads to node 0 at first.
func semiSync(t *testing.T) (*env, *teststack.Pair, *testdb.Link) {
	t.Helper()
	p := teststack.SemiSync(t, "guard")
	e, address := atOneAddress(t, p, "&timeout=2s&readTimeout=5s")
	return e, p, address
}

// TestSemiSyncUnknown: of a COMMIT in which the primary dies nobody knows what became of it,
// as long as the replica has its place.
func TestSemiSyncUnknown(t *testing.T) {
	e, p, address := semiSync(t)
	for no, cut := range map[string]*atomic.Bool{"executed": &address.After, "not executed": &address.Before} {
		wantNil(t, e.Apply(bg, "order:before "+no, guard.Insert(&Order{No: "before " + no}))) // there is a connection
		cut.Store(true)
		address.Away.Store(true) // until the failover is over
		done := make(chan error, 1)
		go func() { done <- e.Apply(bg, "order:"+no, guard.Insert(&Order{No: no})) }()
		resets := address.Resets.Load()
		testwait.Until(t, "the COMMIT has no answer", func() bool { return address.Resets.Load() > resets || len(done) > 0 })
		p.Run(t, "kill", 0)
		p.Run(t, "promote", 1)
		address.Lead(p.Addr(t, 1))
		cut.Store(false)
		address.Away.Store(false)
		wantIs(t, <-done, guard.ErrUnknown)
		p.Run(t, "start", 0)
		p.Run(t, "promote", 0)
		address.Lead(p.Addr(t, 0))
		p.Heal(t)
	}
	e.wantUnknownOnly(2)
}

// TestSemiSyncFailover: see failOver.
func TestSemiSyncFailover(t *testing.T) {
	for name, fault := range map[string]string{"switched over": "", "killed": "kill", "paused": "pause"} {
		t.Run(name, func(t *testing.T) {
			e, p, address := semiSync(t)
			l := load{e: e, stop: make(chan struct{})}
			l.failOver(p, address, fault)
		})
	}
}

// TestSemiSyncCheck: a primary that goes on without its replica is worth a warning.
func TestSemiSyncCheck(t *testing.T) {
	e, _, _ := semiSync(t)
	guardtest.New(t, e.db)
	for _, tt := range []struct {
		set   string
		warns string
	}{
		{"rpl_semi_sync_master_wait_point = AFTER_SYNC", ""}, // as it is
		{"rpl_semi_sync_master_wait_point = AFTER_COMMIT", "AFTER_COMMIT shows"},
		{"rpl_semi_sync_master_wait_point = AFTER_SYNC, GLOBAL rpl_semi_sync_master_timeout = 10000", "timeout = 10000 loses"},
		{"rpl_semi_sync_master_enabled = OFF", ""},
	} {
		wantNil(t, e.db.Exec("SET GLOBAL "+tt.set).Error)
		heard := &warned{Interface: logger.Discard}
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		wantNil(t, dbguard.Check(ctx, e.db.Session(&gorm.Session{Logger: heard}), &Stock{}))
		cancel()
		if !heard.of(tt.warns) || (heard.text != "") != (tt.warns != "") {
			t.Errorf("%s: warned of %q", tt.set, heard.text)
		}
	}
}
