package guard_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
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
