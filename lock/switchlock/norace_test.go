//go:build !race

package switchlock

const raced = false
