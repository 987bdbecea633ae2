package httpguard

import (
	"errors"
	"net/http"
	"strings"
)

var (
	errNoKey  = errors.New("httpguard: the header Idempotency-Key is missing")
	errBadKey = errors.New("httpguard: the header Idempotency-Key is to be one string of 1 to 255 printable ASCII characters")
)

const maxKey = 255 // bytes

// keyOf returns the idempotency key of a request. Both forms of one text are one key.
func keyOf(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", errNoKey
	case len(values) > 1:
		return "", errBadKey
	}
	value := strings.Trim(values[0], " \t")
	key, ok := value, isBare(value)
	if strings.HasPrefix(value, `"`) {
		key, ok = quoted(value)
	}
	if !ok || key == "" || len(key) > maxKey {
		return "", errBadKey
	}
	return key, nil
}

// isBare reports whether a key is one without quotes.
func isBare(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == ',' })
}

// quoted parses a string of RFC 9651, section 4.2.5, with parameters, which are ignored.
func quoted(s string) (key string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			rest := strings.TrimLeft(s[i+1:], " ")
			return b.String(), rest == "" || s[i+1] == ';' && isParameters(rest)
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// isParameters reports whether s may be the parameters of an item, roughly, because they are
// not used.
func isParameters(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == ',' })
}
