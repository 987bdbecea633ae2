package claim

import (
	"fmt"
	"strings"

	"github.com/belaygo/belay/internal/sqlerr"
)

// Explain adds to the error of a database that has no tables of requests how to create them.
// It returns other errors, and nil, as they are.
func Explain(err error) error {
	if !isMissing(err) {
		return err
	}
	return fmt.Errorf("the tables belay_once and belay_answer are missing: call once.Migrate, or set Once in belay.Config: %w", err)
}

// isMissing reports whether a statement on the tables of requests was refused because one of them
// does not exist.
func isMissing(err error) bool {
	switch {
	case sqlerr.IsMySQL(err, 1146), sqlerr.IsPostgres(err, "42P01"):
	case sqlerr.IsSQLite(err, 1) && strings.Contains(err.Error(), "no such table"):
	default:
		return false
	}
	return strings.Contains(err.Error(), "belay_once") || strings.Contains(err.Error(), "belay_answer")
}
