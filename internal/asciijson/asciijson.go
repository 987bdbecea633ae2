// Package asciijson spells JSON in plain ASCII. A connection to a database whose character set
// is not utf8mb4 would refuse other characters, or change them.
//
//	body = asciijson.Escape(body)
package asciijson

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape returns JSON with all characters outside of ASCII escaped.
func Escape(body []byte) []byte {
	ascii := make([]byte, 0, len(body))
	for _, r := range string(body) {
		switch {
		case r < 0x80:
			ascii = utf8.AppendRune(ascii, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			ascii = fmt.Appendf(ascii, `\u%04x\u%04x`, high, low)
		default:
			ascii = fmt.Appendf(ascii, `\u%04x`, r)
		}
	}
	return ascii
}
