package zklock

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/belaygo/belay/lock/lockengine"
)

// The names of nodes. Locks are spread over 256 folders, as a node's children are listed in
// one answer.

// folder is the parent of the nodes of a key.
func (e *engine) folder(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s/%02x", e.cfg.Root, sum[0])
}

// lockNode is the node that says who has a key.
func (e *engine) lockNode(key string) string { return e.folder(key) + "/" + escaped(key) }

// ownerNode is the node that exists as long as an owner has a key. No escaped key is the same name.
func (e *engine) ownerNode(r lockengine.Request) string {
	sum := sha256.Sum256([]byte(r.Key + "\x00" + r.Owner))
	return fmt.Sprintf("%s/%%o-%x", e.folder(r.Key), sum[:16])
}

// escaped writes the bytes that no name of a node can have, and those that are not ASCII, as
// %xx. A key of dots alone would be a way through the tree.
func escaped(key string) string {
	dots := strings.Trim(key, ".") == ""
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c <= 0x20 || c >= 0x7f || c == '/' || c == '%' || dots {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// keyOf returns the key of a lock's node. It reports false for the other nodes.
func keyOf(lockNode string) (key string, ok bool) {
	key, err := url.PathUnescape(path.Base(lockNode))
	return key, err == nil // no escape begins with %o or %p
}
