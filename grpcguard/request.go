package grpcguard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/belaygo/belay/once"
)

// keyName is that of the metadata.
const keyName = "idempotency-key"

const maxKey = 255 // bytes

var (
	errNoKey  = errors.New("grpcguard: the metadata idempotency-key is missing")
	errBadKey = errors.New("grpcguard: the metadata idempotency-key is to be one string of 1 to 255 printable ASCII characters")
)

func keyOf(values []string) (string, error) {
	if len(values) == 0 {
		return "", errNoKey
	}
	key := values[0]
	strange := strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKey || strange {
		return "", errBadKey
	}
	return key, nil
}

// printVersion is that of the Print.
const printVersion = 1

// deterministic is how messages are compared and stored.
var deterministic = proto.MarshalOptions{Deterministic: true}

// requestOf names the call.
func requestOf(method, principal, key string, message proto.Message) (once.Request, error) {
	encoded, err := deterministic.Marshal(message)
	return once.Request{
		Operation: nameOf(method),
		Scope:     []string{principal},
		ID:        key,
		Print:     once.PrintOf(printVersion, []byte(method), encoded),
	}, err
}

// nameOf makes a method the name of an operation: legible, and different from that of any
// other method.
func nameOf(method string) string {
	const legible = 40
	sum := sha256.Sum256([]byte(method))
	name := strings.ReplaceAll(strings.ToLower(strings.Trim(method, "/")), "/", ".")
	return name[max(0, len(name)-legible):] + "." + hex.EncodeToString(sum[:8])
}
