package lock

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKeyLen is the greatest length of a key, in bytes.
const maxKeyLen = 512

// checkKey returns an error that matches ErrInvalidKey unless key can be locked. Braces
// are there for a hash tag only, {42} in order:{42}:items: others would change the hash
// slot of the lock but not that of its channel on a Redis Cluster.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty: name the thing that callers exclude each other from, as in order:7", ErrInvalidKey)
	case len(key) > maxKeyLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidKey, len(key), maxKeyLen)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not valid UTF-8", ErrInvalidKey, key)
	case !bracesTag(key):
		return fmt.Errorf("%w: %q has a brace that is not of a hash tag: leave it out, or write one tag, as in order:{42}:items", ErrInvalidKey, key)
	}
	return nil
}

// bracesTag reports whether key has no braces but those of one hash tag.
func bracesTag(key string) bool {
	before, rest, opened := strings.Cut(key, "{")
	tag, after, closed := strings.Cut(rest, "}")
	return !strings.Contains(before, "}") && (!opened || closed && tag != "" && !strings.Contains(tag, "{") && !strings.ContainsAny(after, "{}"))
}
