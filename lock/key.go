package lock

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKeyLen is the greatest length of a key, in bytes.
const MaxKeyLen = 512

// CheckKey returns an error that matches ErrInvalidKey unless key can be
// locked: 1 to 512 bytes of valid UTF-8 without braces. A brace would change
// the hash slot of the lock but not that of its channel on a Redis Cluster.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	case len(key) > MaxKeyLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidKey, len(key), MaxKeyLen)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not valid UTF-8", ErrInvalidKey, key)
	case strings.ContainsAny(key, "{}"):
		return fmt.Errorf("%w: %q has a brace", ErrInvalidKey, key)
	}
	return nil
}
