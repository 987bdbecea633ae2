package httpguard

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"mime/multipart"
	"strings"
)

// maxParts is how many parts are compared, as many as net/http parses: the work on a body of tiny
// parts is bounded.
const maxParts = 1000

// sumOfParts returns a hash of the parts of a multipart body: of their headers and contents, in
// their order. The hash leaves out the boundary, which a client makes anew whenever it sends
// the form. sumOfParts reports false for other bodies, incomplete ones, and those of more than
// maxParts parts. It reads the body once, and keeps no parts.
func sumOfParts(body []byte, media, boundary string) (sum []byte, ok bool) {
	if !strings.HasPrefix(media, "multipart/") || boundary == "" {
		return nil, false
	}
	h := sha256.New()
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxParts + 1 { // the last one is the end
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) { // one that is wrapped is of a body that ends too early
			return h.Sum(nil), errors.Unwrap(err) == nil
		}
		if err != nil {
			return nil, false
		}
		header, content := headerBytes(part.Header), sha256.New()
		if _, err := io.Copy(content, part); err != nil {
			return nil, false
		}
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(header))))
		_, _ = h.Write(header)
		_, _ = h.Write(content.Sum(nil))
	}
	return nil, false
}
