package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// ErrAnswer is returned when an answer can't be stored, as it can't be encoded or is too
// long, or when a stored one can't be decoded.
var ErrAnswer = errors.New("guard: answer can't be stored")

// A Codec encodes answers. All fields are required.
type Codec struct {
	// Name has 1 to 32 printable characters of ASCII. It is stored with each answer.
	Name string
	// Marshal encodes an answer. Unmarshal decodes data into the answer that v points to. They
	// are safe for concurrent use.
	Marshal   func(v any) ([]byte, error)
	Unmarshal func(data []byte, v any) error
}

// codecNames are those that every database stores as they are.
var codecNames = regexp.MustCompile(`^[!-~]{1,32}$`)

func (c Codec) check() error {
	switch {
	case !codecNames.MatchString(c.Name):
		return fmt.Errorf("%w: the codec is named %q, not 1 to 32 printable characters of ASCII", ErrAnswer, c.Name)
	case c.Marshal == nil || c.Unmarshal == nil:
		return fmt.Errorf("%w: the codec %s lacks Marshal or Unmarshal", ErrAnswer, c.Name)
	}
	return nil
}

const (
	defaultBody = 64 << 10
	largestBody = 1<<24 - 1 // of a MEDIUMBLOB
)

var jsonCodec = Codec{Name: "json", Marshal: json.Marshal, Unmarshal: json.Unmarshal}

var bytesCodec = Codec{
	Name:    "bytes",
	Marshal: func(v any) ([]byte, error) { return v.([]byte), nil },
	Unmarshal: func(data []byte, v any) error {
		*v.(*[]byte) = data
		return nil
	},
}
