package dbtx_test

import (
	"database/sql"
	"database/sql/driver"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testwait"
)

// touchyValue is a driver.Valuer that panics.
type touchyValue struct{}

func (touchyValue) Value() (driver.Value, error) { panic("a value") }

// TestPanicInAVisit: a panic in a query reaches its caller, and does not wait for an end of the query.
func TestPanicInAVisit(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		query := "SELECT ?"
		if db.Name() == "postgres" {
			query = "SELECT CAST($1 AS TEXT)"
		}
		recovered := make(chan any, 1)
		go func() {
			defer func() { recovered <- recover() }()
			_ = dbtx.Visit(bg, db, func(v *dbtx.Visitor) error {
				return v.Read(bg, func(c *sql.Conn) error { return c.QueryRowContext(bg, query, touchyValue{}).Err() })
			})
		}()
		testwait.Until(t, "the panic arrives", func() bool { return len(recovered) > 0 })
		if p := <-recovered; p != "a value" {
			t.Errorf("recovered %v", p)
		}
	})
}
