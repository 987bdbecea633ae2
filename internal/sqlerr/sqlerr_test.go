package sqlerr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/belaygo/belay/internal/sqlerr"
	"github.com/belaygo/belay/internal/sqlerr/fakesqlite"
)

// TestCodesOfSQLite: the extended code of an error is found in each of the shapes that drivers give
// it, also when the error is wrapped.
func TestCodesOfSQLite(t *testing.T) {
	const unique = 2067
	for name, err := range map[string]error{
		"methods of named types": fakesqlite.Named(unique),
		"a method":               &fakesqlite.Method{N: unique},
		"fields":                 fakesqlite.Field{Code: 19, ExtendedCode: unique},
		"the error itself":       fakesqlite.Bare(unique),
	} {
		for _, err := range []error{err, fmt.Errorf("insert: %w", err), errors.Join(errors.New("other"), err)} {
			if code := sqlerr.SQLite(err); code != unique {
				t.Errorf("%s: code of %v is %d, want %d", name, err, code, unique)
			}
			if !sqlerr.IsSQLite(err, 19) {
				t.Errorf("%s: %v is no violation of a constraint", name, err)
			}
		}
	}
	for _, err := range []error{nil, errors.New("sqlite"), &fakesqlite.None{Code: "5"}} {
		if code := sqlerr.SQLite(err); code != 0 {
			t.Errorf("code of %v is %d, want none", err, code)
		}
	}
}
