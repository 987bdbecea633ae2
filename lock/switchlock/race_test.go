//go:build race

package switchlock

// raced reports whether the race detector multiplies what computes.
const raced = true
