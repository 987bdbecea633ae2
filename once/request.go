package once

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
)

// ErrRequest is returned for a Request that names none.
var ErrRequest = errors.New("once: invalid request")

// Anyone is the scope of requests whose ids are unique whoever sends them.
var Anyone = []string{"anyone"}

// A Request is what a caller asks for, once. It is named by Operation, Scope and ID
// together: the same ID in another scope is another request.
type Request struct {
	// Operation is a constant of the program, 1 to 64 characters of a-z, 0-9, ".", "_"
	// and "-". A new name forgets what was done under the old one.
	Operation string
	// Scope says who asks, such as a tenant and a user. It has at least one part, and
	// none is empty. Anyone says that no scope is needed.
	Scope []string
	// ID is the caller's, 1 to 255 bytes. It should be random: of two requests with one
	// ID only the first takes effect.
	ID string
	// Print is of what is asked for. The zero Print is not compared.
	Print Print
}

var operations = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

const maxID = 255 // bytes

// Validate returns an error that matches ErrRequest unless r names a request.
func (r Request) Validate() error {
	switch {
	case !operations.MatchString(r.Operation):
		return fmt.Errorf("%w: Operation %.80q is not 1 to 64 of a-z, 0-9, dot, underscore and hyphen", ErrRequest, r.Operation)
	case len(r.Scope) == 0:
		return fmt.Errorf("%w: no Scope: say who asks, or once.Anyone", ErrRequest)
	case len(r.ID) < 1 || len(r.ID) > maxID:
		return fmt.Errorf("%w: ID has %d bytes, not 1 to %d", ErrRequest, len(r.ID), maxID)
	}
	for i, part := range r.Scope {
		if part == "" {
			return fmt.Errorf("%w: part %d of Scope is empty", ErrRequest, i+1)
		}
	}
	return nil
}

// Sum names the request in the tables and in keys: the SHA-256 of Operation, Scope and ID.
// Neither has anything else of the caller's.
func (r Request) Sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	write(h, []byte(r.Operation))
	write(h, binary.BigEndian.AppendUint64(nil, uint64(len(r.Scope))))
	for _, part := range r.Scope {
		write(h, []byte(part))
	}
	write(h, []byte(r.ID))
	h.Sum(sum[:0])
	return sum
}

// Key is the key of the request's lock.
func (r Request) Key() string {
	sum := r.Sum()
	return "once:" + r.Operation + ":" + hex.EncodeToString(sum[:16])
}

// Downstream returns the id of what the operation asks of another service, such as a
// payment provider: the same for every attempt of the request, another for each name.
func (r Request) Downstream(name string) string {
	sum := r.Sum()
	h := sha256.New()
	write(h, sum[:])
	write(h, []byte(name))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// write writes a part with its length, so that no two lists of parts are one.
func write(h hash.Hash, part []byte) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
	_, _ = h.Write(part)
}

// A Print is of what a request asks for: a repeat that asks for something else is
// refused. The zero Print is not compared.
type Print struct{ sum string }

// PrintOf returns the Print of the parts. Prints of different versions are not compared, so
// that a program may change what its parts are.
func PrintOf(version uint8, parts ...[]byte) Print {
	h := sha256.New()
	for _, part := range parts {
		write(h, part)
	}
	return Print{string(h.Sum([]byte{version}))}
}

// Bytes returns the version and the SHA-256 of the parts; nil of the zero Print.
func (p Print) Bytes() []byte {
	if p.sum == "" {
		return nil
	}
	return []byte(p.sum)
}

// Differs reports whether p and the stored bytes of another Print are of different
// requests, as far as they can be compared.
func (p Print) Differs(stored []byte) bool {
	return p.sum != "" && len(stored) > 0 && stored[0] == p.sum[0] && string(stored) != p.sum
}
