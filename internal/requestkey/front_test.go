package requestkey_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/belaygo/belay/internal/requestkey"
)

// TestFront: the sum of an id that begins with a time begins with that time, and no other does.
func TestFront(t *testing.T) {
	for _, c := range []struct {
		id, want string // "" if it is a hash
	}{
		{"0199a1b2-c3d4-7abc-8def-0123456789ab", "0199a1b2c3d4"},
		{"0199A1B2-C3D4-7ABC-8DEF-0123456789AB", "0199a1b2c3d4"},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01563e3ab5d3"},
		{"01arz3ndektsv4rrffq69g5fav", "01563e3ab5d3"},
		{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ffffffffffff"},
		{"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", ""}, // beyond the greatest ULID
		{"01ARZ3NDEKTSV4RRFFQ69G5FAU", ""}, // U is no digit
		{"01ARZ3NDEKTSV4RRFFQ69G5FA", ""},
		{"01ARZ3NDEKTSV4RRFFQ69G5FA=", ""}, // padding is no digit
		{"01ARZ3NDEKTSV4RRFF\n\n\n\n\n\n\n\n", ""},
		{"0199a1b2-c3d4-4abc-8def-0123456789ab", ""}, // version 4
		{"0199a1b2-c3d4-7abc-8def-0123456789ag", ""},
		{"0199a1b2c3d47abc8def0123456789ab", ""},
		{"{0199a1b2-c3d4-7abc-8def-0123456789a", ""},
		{"", ""},
	} {
		sum := requestkey.Sum("order", []string{"a"}, c.id)
		begins := hex.EncodeToString(sum[:6])
		if c.want != "" && begins != c.want {
			t.Errorf("the sum of %q begins with %s, want %s", c.id, begins, c.want)
		}
		if c.want == "" && begins != hex.EncodeToString(hashOf("order", "a", c.id)[:6]) {
			t.Errorf("the sum of %q begins with %s, which is no hash", c.id, begins)
		}
	}
}

// hashOf is the SHA-256 of an operation, a scope of one part, and an id, each with its length.
func hashOf(operation, part, id string) []byte {
	h := sha256.New()
	requestkey.Write(h, []byte(operation))
	h.Write([]byte{0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1})
	requestkey.Write(h, []byte(part))
	requestkey.Write(h, []byte(id))
	return h.Sum(nil)
}

// FuzzSum: all bytes behind the front are of the hash, so what makes two requests differ is no less than that.
func FuzzSum(f *testing.F) {
	for _, id := range []string{"1", "0199a1b2-c3d4-7abc-8def-0123456789ab", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FA\xff", "urn:uuid:0199a1b2-c3d4-7abc-8def-0123"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		sum := requestkey.Sum("order", []string{"a"}, id)
		if !bytes.Equal(sum[6:], hashOf("order", "a", id)[6:]) {
			t.Errorf("the sum of %q is %x, and its hash %x", id, sum, hashOf("order", "a", id))
		}
	})
}
