//go:build !failpoints

package fail

// Point does nothing in this build.
func Point(string) {}
