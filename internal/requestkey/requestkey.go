// Package requestkey names requests in tables and in keys. Package once has the requests;
// guard-monitor finds the key of one without a database.
package requestkey

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Sum names a request: it is the SHA-256 of its operation, its scope and its id. If the id begins
// with a time, so does the sum, in place of the first bytes: new rows are side by side in their table then.
func Sum(operation string, scope []string, id string) [sha256.Size]byte {
	b := appendPart(make([]byte, 0, 256), operation) // most often on the stack
	b = binary.BigEndian.AppendUint64(b, 8)
	b = binary.BigEndian.AppendUint64(b, uint64(len(scope)))
	for _, part := range scope {
		b = appendPart(b, part)
	}
	sum := sha256.Sum256(appendPart(b, id))
	copy(sum[:], front(id))
	return sum
}

// appendPart appends what Write writes.
func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

// Of returns the key of a request's lock. It begins with "once:" and the operation.
func Of(operation string, scope []string, id string) string {
	return OfSum(operation, Sum(operation, scope, id))
}

// OfSum returns the key of the lock of the request that has the sum.
func OfSum(operation string, sum [sha256.Size]byte) string {
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
