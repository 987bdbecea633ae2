package once

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/belaygo/belay/internal/requestkey"
)

// ErrRequest is returned for a Request that names none.
var ErrRequest = errors.New("once: invalid request")

// Anyone is the scope of requests whose ids are unique for all senders.
var Anyone = []string{"anyone"}

// A Request identifies a caller's request, which takes effect once. It is named by
// Operation, Scope and ID together: an ID in another scope is another request.
type Request struct {
	// Operation is a constant of the program, 1 to 64 characters of a-z, 0-9, ".", "_"
	// and "-". Requests served under an old name are forgotten under a new one.
	Operation string
	// Scope identifies the caller, such as a tenant and a user. It has at least one
	// part, and none is empty. Use Anyone if no scope is needed.
	Scope []string
	// ID is the caller's, 1 to 255 bytes. It should be random: of two requests with one
	// ID only the first takes effect. Large tables are fastest with UUIDs of version 7 or ULIDs.
	ID string
	// Print identifies the content of the request. The zero Print is not compared.
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
		return fmt.Errorf("%w: no Scope: set it to who sends the request, such as a user, or to once.Anyone", ErrRequest)
	case len(r.ID) < 1 || len(r.ID) > maxID:
		return fmt.Errorf("%w: ID has %d bytes, not 1 to %d: set it to the id that the sender repeats, such as an Idempotency-Key", ErrRequest, len(r.ID), maxID)
	}
	for i, part := range r.Scope {
		if part == "" {
			return fmt.Errorf("%w: part %d of Scope is empty", ErrRequest, i+1)
		}
	}
	return nil
}

// Key is the key of the request's lock. Keys are in events, in logs and in Redis; it shows the
// Operation, but of the rest no more than the time that an ID begins with. The command "guard-monitor request-key" finds
// the request of a key among those whose ids are known.
func (r Request) Key() string { return requestkey.Of(r.Operation, r.Scope, r.ID) }

// LogValue implements slog.LogValuer: a request is logged as its Key. Log it where requests begin,
// with their ids, and the keys of events can be looked up.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.Key()) }

// Downstream returns the id for a request to another service, such as a payment
// provider: equal for every attempt of the request, different for each name.
func (r Request) Downstream(name string) string {
	return requestkey.Downstream(requestkey.Sum(r.Operation, r.Scope, r.ID), name)
}

// A Print identifies the content of a request: a repeat with other content is refused.
// The zero Print is not compared.
type Print struct{ sum string }

// PrintOf returns the Print of the parts. Prints of different versions are not compared, so
// that a program may change its parts.
func PrintOf(version uint8, parts ...[]byte) Print {
	h := sha256.New()
	for _, part := range parts {
		requestkey.Write(h, part)
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
