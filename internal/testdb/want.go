package testdb

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/teststack"
)

// Main runs the tests of a package that uses gorm. They fail if goroutines are left.
func Main(m *testing.M) {
	teststack.Quiet()
	// gorm's cache of prepared statements has a goroutine that nothing stops.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

// WantNil ends the test unless err is nil.
func WantNil(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// WantIs ends the test unless err matches target.
func WantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Fatalf("error is %v, want %v", err, target)
	}
}
