package promises_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/guard"
)

// TestForWithAPlugin: a plugin may have all INSERTs pass over rows that are there. A request
// that could take effect twice is refused.
func TestForWithAPlugin(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]clause.OnConflict{"ignores": {DoNothing: true}, "updates": {UpdateAll: true}} {
		for who, opts := range map[string][]guard.Option{"alone": nil, "combined": {guard.Combine(), guard.Wait(time.Minute)}} {
			t.Run(name+", "+who, func(t *testing.T) {
				t.Parallel()
				withOnce(t, func(e *env) {
					wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:alter", func(tx *gorm.DB) {
						tx.Statement.AddClause(alter)
					}))
					for range 2 {
						if err := e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), append(opts, guard.For(request("a")))...); err == nil {
							e.t.Error("the request was taken")
						}
					}
					all := shoppers(3)
					all[1].serves = all[0].serves
					e.sell(all...)
					for _, b := range all {
						if b.err == nil {
							e.t.Error("a request of a crew was taken")
						}
					}
					e.wantTaken(0)
					e.wantClaims(0)
					e.wantNoEvent()
				})
			})
		}
	}
}
