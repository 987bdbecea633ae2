package promises_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// TestShutdownIsNoLockFailure: the program ends with too short a grace, and its Locker
// gives up a lease while an operation runs. That is rolled back, and no lock failed.
func TestShutdownIsNoLockFailure(t *testing.T) {
	for name, op := range map[string]guard.Op{
		"insert": guard.Insert(&Order{No: "a"}).Run,
		"repeat": guard.Insert(&Order{No: "there"}).Run,
	} {
		t.Run(name, func(t *testing.T) {
			db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
			wantNil(t, db.AutoMigrate(&Order{}))
			wantNil(t, db.Create(&Order{No: "there"}).Error)
			var events guardtest.Recorder
			var log testlog.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			locker, err := lock.New(memlock.New(), lock.Config{Logger: logger})
			wantNil(t, err)
			g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: &events, Logger: logger})
			wantNil(t, err)

			runs, goOn, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				result <- g.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
					if name == "repeat" { // it meets the conflict before
						err := op(ctx, tx)
						close(runs)
						<-goOn
						return err
					}
					close(runs)
					<-goOn
					return op(ctx, tx)
				})
			}()
			<-runs
			grace, cancel := context.WithCancel(bg)
			cancel()
			wantIs(t, g.Close(grace), context.Canceled)
			_ = locker.Close(grace)
			close(goOn)
			if err := <-result; name == "insert" {
				wantIs(t, err, guard.ErrLost)
				wantIs(t, err, lock.ErrClosed)
			} else {
				wantIs(t, err, guard.ErrDuplicate)
			}
			if all := events.All(); len(all) != 0 {
				t.Errorf("published: %+v", all)
			}
			for _, level := range []string{"level=ERROR", "level=WARN"} {
				if strings.Contains(log.String(), level) {
					t.Errorf("log: %s", log.String())
				}
			}
		})
	}
}
