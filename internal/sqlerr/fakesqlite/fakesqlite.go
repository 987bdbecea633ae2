// Package fakesqlite has errors of the shapes that drivers of SQLite give theirs, for tests that
// import no driver. Its path names SQLite, as those of the drivers do.
//
//nolint:errname,revive // the shapes are those of drivers
package fakesqlite

type (
	code     uint8
	extended uint16
	errno    int
)

// Named has its codes in methods, of types of its own.
type Named uint16

func (Named) Error() string            { return "named" }
func (e Named) Code() code             { return code(e & 0xff) }
func (e Named) ExtendedCode() extended { return extended(e) }

// Method has its extended code in a method that returns an int.
type Method struct{ N int }

func (*Method) Error() string { return "method" }

// Code returns the extended code.
func (e *Method) Code() int { return e.N }

// Field has its codes in fields.
type Field struct{ Code, ExtendedCode errno }

func (Field) Error() string { return "field" }

// Bare is a code that is an error itself.
type Bare int

func (Bare) Error() string { return "bare" }

// None has no code.
type None struct{ Code string }

func (*None) Error() string { return "none" }
