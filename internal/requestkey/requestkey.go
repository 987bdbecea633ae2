// Package requestkey names requests in tables and in keys. Package once has the requests;
// guard-monitor finds the key of one without a database.
package requestkey

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Sum returns the SHA-256 of a request: of its operation, its scope and its id.
func Sum(operation string, scope []string, id string) (sum [sha256.Size]byte) {
	h := sha256.New()
	Write(h, []byte(operation))
	Write(h, binary.BigEndian.AppendUint64(nil, uint64(len(scope))))
	for _, part := range scope {
		Write(h, []byte(part))
	}
	Write(h, []byte(id))
	h.Sum(sum[:0])
	return sum
}

// Of returns the key of a request's lock. It begins with "once:" and the operation.
func Of(operation string, scope []string, id string) string {
	sum := Sum(operation, scope, id)
	return "once:" + operation + ":" + hex.EncodeToString(sum[:16])
}

// Downstream returns the id for a request to another service, of the request that has the sum.
func Downstream(sum [sha256.Size]byte, name string) string {
	h := sha256.New()
	Write(h, sum[:])
	Write(h, []byte(name))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Write writes a part with its length, so that no two lists of parts are one.
func Write(h hash.Hash, part []byte) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
	_, _ = h.Write(part)
}
