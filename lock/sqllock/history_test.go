package sqllock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
)

// A server that is killed and started again has the locks that it granted.
func TestHistory(t *testing.T) {
	for _, server := range []string{"mariadb", "mysql", "postgres"} {
		t.Run(server, func(t *testing.T) {
			db := teststack.StartDatabase(t, "history", server)
			judge(t, db.DSN, func(t *testing.T) {
				db.Kill(t)
				db.Start(t)
			})
		})
	}
	t.Run("sqlite", func(t *testing.T) { judge(t, file(t), nil) })
}

func judge(t *testing.T, dsn string, fail func(t *testing.T)) {
	t.Helper()
	migrate(t, dsn)
	lockhistory.Test(t, lockhistory.Setup{
		Where:  dsn,
		Key:    func(name string) string { return name },
		Engine: open(t, dsn),
		Break:  fail,
	})
}
