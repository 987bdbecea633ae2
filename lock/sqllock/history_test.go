package sqllock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/locktest"
)

// A server that is killed and started again has the locks that it granted. If it stands
// still, or its answers are lost, for longer than they last, nobody believes in them any more.
func TestHistory(t *testing.T) {
	for _, server := range []string{"mariadb", "mysql", "postgres"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			db := teststack.StartDatabase(t, "history-"+server, server) // a stack of its own, beside the others
			link := locktest.NewLink(t, testdb.AddrOf(t, db.DSN))
			breaks := []lockhistory.Break{
				{Name: "killed", Do: func(t *testing.T) {
					t.Helper()
					db.Kill(t)
					db.Start(t)
				}},
				lockhistory.CutOff("cut off", link),
			}
			if server != "postgres" { // its sessions are processes of their own, which would go on
				breaks = append(breaks, lockhistory.Outage("paused", func(t *testing.T) func() {
					t.Helper()
					db.Pause(t)
					return func() { db.Resume(t) }
				}))
			}
			migrate(t, db.DSN)
			judge(t, testdb.By(t, db.DSN, link.Addr), breaks)
		})
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dsn := file(t)
		migrate(t, dsn)
		judge(t, dsn, nil)
	})
}

func judge(t *testing.T, dsn string, breaks []lockhistory.Break) {
	t.Helper()
	lockhistory.Test(t, lockhistory.Setup{
		Where:  dsn,
		Key:    func(name string) string { return name },
		Engine: open(t, dsn),
		Breaks: breaks,
	})
}
