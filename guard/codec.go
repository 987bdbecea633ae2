package guard

import (
	"encoding/json"
	"fmt"
	"regexp"
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

// codecNames are those that every database stores as they are.
var codecNames = regexp.MustCompile(`^[!-~]{1,32}$`)

func (a *answering) encode(o options, v any, refused bool) error {
	codec := o.codecFor(a.model)
	if name := codec.Name(); !codecNames.MatchString(name) {
		return fmt.Errorf("%w: the codec is named %q, not 1 to 32 printable characters of ASCII", ErrAnswer, name)
	}
	body, err := codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: encode: %w", ErrAnswer, err)
	}
	limit := o.maxBody
	if limit == 0 {
		limit = defaultBody
	}
	if len(body) > limit {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed: see MaxAnswer", ErrAnswer, len(body), limit)
	}
	a.answer.Refused, a.answer.Codec, a.answer.Body = refused, codec.Name(), body
	return nil
}

// decode sets what v points to. An answer that is there is never made again.
func (a *answering) decode(o options, v any) error {
	codec := o.codecFor(v)
	if a.answer.Codec != codec.Name() {
		return fmt.Errorf("%w: it is encoded as %q, not %q", ErrAnswer, a.answer.Codec, codec.Name())
	}
	if err := codec.Unmarshal(a.answer.Body, v); err != nil {
		return fmt.Errorf("%w: decode: %w", ErrAnswer, err)
	}
	return nil
}
