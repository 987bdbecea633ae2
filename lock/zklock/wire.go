package zklock

import (
	"encoding/binary"
	"errors"
)

// An encoder appends values as ZooKeeper's protocol has them: integers with the highest
// byte first, texts and bytes after their length.
type encoder struct{ b []byte }

func (e *encoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) } //nolint:gosec // the bits
func (e *encoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) } //nolint:gosec // the bits

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) text(v string) {
	e.int32(int32(len(v))) //nolint:gosec // of a path or an owner
	e.b = append(e.b, v...)
}

// frame returns what was appended, after its length.
func (e *encoder) frame() []byte {
	frame := make([]byte, 0, 4+len(e.b))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(e.b))) //nolint:gosec // of some kilobytes
	return append(frame, e.b...)
}

var errShort = errors.New("the server's answer is too short")

// A decoder takes values off an answer. After an error it returns zero values.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.b, d.err = nil, errShort
		return make([]byte, 8)
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) int32() int32 { return int32(binary.BigEndian.Uint32(d.take(4))) } //nolint:gosec // the bits
func (d *decoder) int64() int64 { return int64(binary.BigEndian.Uint64(d.take(8))) } //nolint:gosec // the bits
func (d *decoder) bool() bool   { return d.take(1)[0] != 0 }

func (d *decoder) text() string {
	n := d.int32()
	if n <= 0 { // -1 is none
		return ""
	}
	v := d.take(int(n))
	if d.err != nil {
		return ""
	}
	return string(v)
}
