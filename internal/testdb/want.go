package testdb

import (
	"errors"
	"testing"
)

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
