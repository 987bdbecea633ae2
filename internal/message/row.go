package message

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belaygo/belay/internal/asciijson"
)

// Bounds of a Row, in bytes.
const (
	MaxBody    = 1 << 20
	MaxHeaders = 16 << 10 // as JSON
	maxKey     = 512
	maxName    = 255 // a message id, or a topic
)

// Table is the table of messages.
const Table = "belay_message"

// Lanes is the number of lanes.
const Lanes = 32

// ErrInvalid is matched by the error of a Row that cannot be stored.
var ErrInvalid = errors.New("message: invalid message")

// A Row is a message.
type Row struct {
	// MessageID is the message's id, 1 to 255 visible characters of ASCII. It never changes.
	MessageID string
	// Key orders messages: those of one key leave in the order of their commits. It is at
	// most 512 bytes long. Without a key a message has no order.
	Key string
	// Topic selects the way out, 1 to 255 visible characters of ASCII.
	Topic string
	// Headers go with the body. As JSON they have 16 KiB at most.
	Headers map[string]string
	// Body has 1 MiB at most.
	Body []byte
}

// A Sum stands for a key. Without a key it stands for the message's id.
type Sum [16]byte

// Sum returns the sum of the row's key, or of its id if it has no key.
func (r Row) Sum() Sum {
	if r.Key == "" {
		return sumOf("id", r.MessageID)
	}
	return sumOf("key", r.Key)
}

func sumOf(kind, name string) Sum {
	whole := sha256.Sum256([]byte(kind + ":" + name))
	return Sum(whole[:len(Sum{})])
}

// Lane returns the lane of a sum, 0 to Lanes-1.
func (s Sum) Lane() int { return int(s[0]) % Lanes }

// Lane returns the lane of a key, 0 to Lanes-1.
func Lane(key string) int { return Row{Key: key}.Sum().Lane() }

// Validate returns an error that matches ErrInvalid if the row cannot be stored.
func (r Row) Validate() error {
	_, err := r.encode()
	return err
}

// encode returns the headers of a valid row as JSON in plain ASCII.
func (r Row) encode() (headers string, err error) {
	switch {
	case !isName(r.MessageID):
		return "", fmt.Errorf("%w: its id %.40q is not 1 to %d visible characters of ASCII", ErrInvalid, r.MessageID, maxName)
	case !isName(r.Topic):
		return "", fmt.Errorf("%w: its topic %.40q is not 1 to %d visible characters of ASCII", ErrInvalid, r.Topic, maxName)
	case len(r.Key) > maxKey:
		return "", fmt.Errorf("%w: its key has %d bytes, and %d are allowed", ErrInvalid, len(r.Key), maxKey)
	case len(r.Body) > MaxBody:
		return "", fmt.Errorf("%w: its body has %d bytes, and %d are allowed", ErrInvalid, len(r.Body), MaxBody)
	}
	if len(r.Headers) == 0 {
		return "", nil
	}
	whole, err := json.Marshal(r.Headers)
	if err != nil {
		return "", fmt.Errorf("%w: its headers: %w", ErrInvalid, err)
	}
	if headers = string(asciijson.Escape(whole)); len(headers) > MaxHeaders {
		return "", fmt.Errorf("%w: its headers have %d bytes, and %d are allowed", ErrInvalid, len(headers), MaxHeaders)
	}
	return headers, nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
