package promises_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// TestMissingTablesNameTheWayOut: whoever serves a request without the tables of package once is
// told how to create them.
func TestMissingTablesNameTheWayOut(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		check := func(what string, err error) {
			e.t.Helper()
			if err == nil || !strings.Contains(err.Error(), "call once.Migrate, or set Once in belay.Config") {
				e.t.Errorf("%s: %v, want an error that names once.Migrate and belay.Config", what, err)
			}
		}
		answer := func(context.Context, *gorm.DB) (string, error) { return "done", nil }
		wantNil(e.t, e.db.Migrator().DropTable("belay_answer"))
		_, err := guard.Once(bg, e.Guard.Guard, request("0"), answer)
		check("Once without belay_answer", err)

		wantNil(e.t, e.db.Migrator().DropTable("belay_once"))
		check("For", e.Do(bg, "stock:1", e.never(), guard.For(request("1"))))
		check("Combine", e.Apply(bg, "stock:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left--; return nil }),
			guard.For(request("2")), guard.Combine()))
		_, err = guard.Once(bg, e.Guard.Guard, request("3"), answer)
		check("Once", err)
		_, err = e.Served(bg, request("4"))
		check("Served", err)
		e.wantNoEvent()
	})
}
