package guard

import (
	"encoding/json"
)

// A Codec encodes answers. The name, 1 to 32 printable characters of ASCII, is
// stored with each.
type Codec interface {
	Name() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// Encode sets the Codec of Once. Defaults to JSON, and to the bytes themselves for an
// answer that is a []byte.
func Encode(c Codec) Option {
	return func(o *options) { o.codec = c }
}

// MaxAnswer sets how many bytes an encoded answer can have, at most 16 MiB - 1. Defaults to
// 64 KiB.
func MaxAnswer(bytes int) Option {
	return func(o *options) { o.maxBody = bytes }
}

const (
	defaultBody = 64 << 10
	largestBody = 1<<24 - 1 // of a MEDIUMBLOB
)

type jsonCodec struct{}

func (jsonCodec) Name() string                       { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

type bytesCodec struct{}

func (bytesCodec) Name() string                  { return "bytes" }
func (bytesCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}

// codecFor returns the codec for what model points to.
func (o options) codecFor(model any) Codec {
	if o.codec != nil {
		return o.codec
	}
	if _, ok := model.(*[]byte); ok {
		return bytesCodec{}
	}
	return jsonCodec{}
}
