// Package sqlerr reads the errors of the databases' drivers.
package sqlerr

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// IsReadOnly reports that the database takes no writes on this connection: it is a replica, or
// has become one, or the session is read-only.
func IsReadOnly(err error) bool {
	return IsMySQL(err, 1290, 1792, 1836) || IsPostgres(err, "25006") || IsSQLite(err, 8)
}

// FromServer reports whether the database itself gave the error.
func FromServer(err error) bool {
	return MySQL(err) != 0 || SQLite(err) != 0 || Postgres(err) != ""
}

// IsBroken reports whether err is a driver's for a connection that broke.
func IsBroken(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// MySQL returns the number of an error of MySQL or MariaDB, or 0.
func MySQL(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// Signaled reports whether a program of a MySQL or MariaDB has raised err, with the usual SQLSTATE.
func Signaled(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && string(e.SQLState[:]) == "45000"
}

// IsMySQL reports whether err has one of the numbers.
func IsMySQL(err error, numbers ...uint16) bool { return slices.Contains(numbers, MySQL(err)) }

// Postgres returns the SQLSTATE of a PostgreSQL error, or "".
func Postgres(err error) string {
	if err == nil { // as most often, without e's allocation
		return ""
	}
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// IsPostgres reports whether err has one of the codes, or is of one of the classes.
func IsPostgres(err error, codes ...string) bool {
	code := Postgres(err)
	return slices.ContainsFunc(codes, func(c string) bool { return strings.HasPrefix(code, c) })
}

// IsSQLite reports whether err has one of the codes, extended or not.
func IsSQLite(err error, codes ...int) bool {
	code := SQLite(err)
	return code != 0 && (slices.Contains(codes, code) || slices.Contains(codes, code&0xff))
}

// SQLite returns the extended result code of an SQLite error, or 0. No driver
// can be imported, as two of them don't get along; and other errors have codes, too.
func SQLite(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range several.Unwrap() {
				if code := SQLite(e); code != 0 {
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
		if code, ok := resultCode(reflect.ValueOf(err)); ok {
			return code
		}
	}
	return 0
}

// resultCode returns the code of an error of a driver, the extended one if it has both: it is the
// result of a method in modernc's and ncruces' drivers, a field in mattn's, or the error itself.
// Most drivers have types of their own for codes.
func resultCode(err reflect.Value) (int, bool) {
	for _, method := range []reflect.Value{err.MethodByName("ExtendedCode"), err.MethodByName("Code")} {
		if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
			continue
		}
		if code, ok := integer(method.Call(nil)[0]); ok {
			return code, true
		}
	}
	e := reflect.Indirect(err)
	if e.Kind() == reflect.Struct {
		e = e.FieldByName("ExtendedCode")
	}
	return integer(e)
}

// integer returns v as an int, and false if it is no integer.
func integer(v reflect.Value) (int, bool) {
	switch {
	case v.CanInt():
		return int(v.Int()), true
	case v.CanUint():
		return int(v.Uint()), true //nolint:gosec // a code has 32 bits at most
	}
	return 0, false
}
