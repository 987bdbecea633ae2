package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/belaygo/belay/internal/sqldb"
)

// TestSilentServer: the end of a transaction is bounded though its context has no end, and its
// connection is not used again.
func TestSilentServer(t *testing.T) {
	type run = func(sqldb.DB, context.Context, func(sqldb.Conn) error) error
	for statement, tt := range map[string]struct {
		run  run
		want error
	}{
		"COMMIT":   {sqldb.DB.InTx, context.DeadlineExceeded},
		"ROLLBACK": {sqldb.DB.Read, nil},
	} {
		t.Run(statement, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{silent: statement}
				pool := sql.OpenDB(s)
				defer pool.Close()
				err := tt.run(sqldb.New(pool, dialect(t, "mysql")), context.Background(), func(c sqldb.Conn) error {
					_, err := c.ExecContext(t.Context(), "INSERT")
					return err
				})
				if !errors.Is(err, tt.want) {
					t.Errorf("err = %v, want %v", err, tt.want)
				}
				if n := s.open(); n != 0 {
					t.Errorf("%d connections are open", n)
				}
			})
		})
	}
}
