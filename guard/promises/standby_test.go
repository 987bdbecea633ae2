package promises_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// TestStandbyCheck: settings by which an acknowledged commit may be lost are worth a warning.
func TestStandbyCheck(t *testing.T) {
	pair := teststack.Standby(t, "check")
	for setting, warns := range map[string]bool{
		"synchronous_commit=on":           false,
		"synchronous_commit=remote_apply": false,
		"synchronous_commit=remote_write": false,
		"synchronous_commit=local":        true,
		"synchronous_commit=off":          true,
	} {
		t.Run(setting, func(t *testing.T) {
			heard := &warned{Interface: logger.Discard}
			db := testdb.OpenPostgres(t, pair.DSN(0)+"&"+setting)
			wantNil(t, dbguard.Install(db))
			wantNil(t, db.AutoMigrate(&Stock{}))
			wantNil(t, dbguard.Check(bg, db.Session(&gorm.Session{Logger: heard}), &Stock{}))
			if heard.of("synchronous_commit") != warns {
				t.Errorf("warned of %q", heard.text)
			}
		})
	}
}

// withoutStandby returns a pair whose dead standby lacks rows that its primary shows. A repeat
// that meets them is told nothing.
func withoutStandby(t *testing.T) (*teststack.Pair, *gorm.DB) {
	t.Helper()
	p := teststack.Standby(t, "repeats")
	former := testdb.OpenPostgres(t, p.DSN(0))
	wantNil(t, former.AutoMigrate(&Order{}))
	wantNil(t, once.Migrate(bg, former))
	p.Run(t, "kill", 1)
	placeUnsafely(t, former)
	wantNoRepeats(t, former)
	return p, former
}

// TestStandbyRepeats: a repeat that meets rows which the standby lacks is told nothing, and
// rightly: promoted, it has none of them, and there the requests take effect.
func TestStandbyRepeats(t *testing.T) {
	p, _ := withoutStandby(t)
	p.Run(t, "kill", 0)
	p.Run(t, "promote", 1)
	next := testdb.OpenPostgres(t, p.DSN(1))
	for way, do := range placing {
		if err := do(alone(t, next, 0)); err != nil {
			t.Errorf("%s on the new primary: %v", way, err)
		}
	}
	p.Heal(t)
	for _, do := range repeats() {
		wantIs(t, do(alone(t, next, 0)), guard.ErrDuplicate)
	}
}

// TestStandbyRepeatsAreThere: what a repeat is told to be there, a promotion keeps.
func TestStandbyRepeatsAreThere(t *testing.T) {
	p, former := withoutStandby(t)
	p.Run(t, "start", 1)
	for _, do := range repeats() {
		wantIs(t, do(alone(t, former, 0)), guard.ErrDuplicate)
	}
	p.Run(t, "kill", 0)
	p.Run(t, "promote", 1)
	for _, do := range repeats() {
		wantIs(t, do(alone(t, testdb.OpenPostgres(t, p.DSN(1)), 0)), guard.ErrDuplicate)
	}
}

// TestStandbyFailover: see failOver.
func TestStandbyFailover(t *testing.T) {
	for _, fault := range []string{"kill", "pause"} {
		t.Run(fault, func(t *testing.T) {
			p := teststack.Standby(t, "failover")
			e, address := atOneAddress(t, p, "")
			l := load{e: e, stop: make(chan struct{}), limit: 3 * time.Second}
			l.failOver(p, address, fault)
		})
	}
}
