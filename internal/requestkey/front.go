package requestkey

import (
	"encoding/base32"
	"strings"

	"github.com/google/uuid"
)

// frontLen is the length of the time that a UUID of version 7 and a ULID begin with: 48 bits of
// milliseconds since 1970.
const frontLen = 6

// front returns the time that an id begins with, nil if it is neither a UUID of version 7 nor a
// ULID. It is a part of the id: no clock is asked, so a repeat has the same at any time.
func front(id string) []byte {
	switch len(id) {
	case 36:
		if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
			return u[:frontLen]
		}
	case 26:
		return ulidTime(id)
	}
	return nil
}

// crockford is the base 32 of ULIDs.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// ulidTime returns the time of a ULID, nil if id is none. Its 26 digits have two bits more than its
// 16 bytes, which are 0. Six digits before it make 20 bytes. If there are fewer, the decoder has left
// out line ends, which are no digits.
func ulidTime(id string) []byte {
	b, err := crockford.DecodeString("000000" + strings.ToUpper(id))
	if err != nil || len(b) != 20 || b[3] != 0 {
		return nil
	}
	return b[4 : 4+frontLen]
}
