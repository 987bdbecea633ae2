//go:build !race

package cost_test

// raced reports whether the race detector allocates, too.
const raced = false
