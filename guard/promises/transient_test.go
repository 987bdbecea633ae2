package promises_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// TestTransient: an operation whose connection the server has ended may succeed a moment later.
// One that the database refuses for what it writes may not.
func TestTransient(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		kill := "KILL CONNECTION_ID()"
		if e.db.Name() == "postgres" {
			kill = "SELECT pg_terminate_backend(pg_backend_pid())"
		}
		err := e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			_ = tx.Exec(kill).Error
			return tx.Exec("SELECT 1").Error
		})
		if !guard.Transient(err) {
			e.t.Errorf("Transient(%v) is false", err)
		}
		refused := e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			return tx.Exec("INSERT INTO nowhere VALUES (1)").Error
		})
		e.create(&Order{No: "a"})
		duplicate := e.Apply(bg, "k", guard.Insert(&Order{No: "a"}))
		for _, err := range []error{nil, refused, duplicate, errors.New("sold out"), guard.ErrUnavailable} {
			if guard.Transient(err) {
				e.t.Errorf("Transient(%v) is true", err)
			}
		}
	})
}
