package lock

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKeyLen is the greatest length of a key, in bytes.
const maxKeyLen = 512

// checkKey returns an error that matches ErrInvalidKey unless key can be locked. A
// brace would change the hash slot of the lock but not that of its channel on a Redis
// Cluster.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	case len(key) > maxKeyLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidKey, len(key), maxKeyLen)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not valid UTF-8", ErrInvalidKey, key)
	case strings.ContainsAny(key, "{}"):
		return fmt.Errorf("%w: %q has a brace", ErrInvalidKey, key)
	}
	return nil
}
