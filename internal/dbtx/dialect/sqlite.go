package dialect

import (
	"errors"
	"reflect"
	"slices"
	"strings"
)

// Result codes of SQLite, and extended ones.
const (
	sqliteBusy   = 5
	sqliteLocked = 6
	sqliteIO     = 10

	sqliteConstraintPK = 1555
	sqliteConstraintUQ = 2067
	sqliteBusySnapshot = 517
)

// sqliteRollsBack are NOMEM, INTERRUPT, IOERR, CORRUPT and FULL, after which SQLite may
// roll back by itself.
var sqliteRollsBack = []int{7, 9, sqliteIO, 11, 13}

// isSQLite reports whether err has one of the codes, extended or not.
func isSQLite(err error, codes ...int) bool {
	code := sqliteCode(err)
	return code != 0 && (slices.Contains(codes, code) || slices.Contains(codes, code&0xff))
}

// sqliteCode returns the extended result code of an SQLite error, or 0. No driver
// can be imported, as two of them don't get along; and other errors have codes, too.
// A pure Go driver has the code in a method, mattn's in a field.
func sqliteCode(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range several.Unwrap() {
				if code := sqliteCode(e); code != 0 {
					return code
				}
			}
		}
		t := reflect.TypeOf(err)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if !strings.Contains(t.PkgPath(), "sqlite") {
			continue
		}
		if e, ok := err.(interface{ Code() int }); ok {
			return e.Code()
		}
		if e := reflect.Indirect(reflect.ValueOf(err)); e.Kind() == reflect.Struct {
			if code := e.FieldByName("ExtendedCode"); code.IsValid() && code.CanInt() {
				return int(code.Int())
			}
		}
	}
	return 0
}
