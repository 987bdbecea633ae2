package simdb

import (
	"fmt"
	"strings"
)

// A token is a word, a number, a text, a parameter or a sign of a statement.
type token struct {
	kind byte   // w word, q quoted name, n number, s text, p parameter, o sign, 0 end
	text string // of a word in upper case
	name string // of a word as it is written
}

// signs of two characters come first.
var signs = []string{"<=>", "<=", ">=", "<>", "!=", "||", "::"}

// tokens splits a statement. It knows no comments but those to the end of a line.
func tokens(sql string) ([]token, error) {
	var found []token
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == ';':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			end := strings.IndexByte(sql[i:]+"\n", '\n')
			i += end
		case c == '`' || c == '"' || c == '\'':
			text, n, ok := quoted(sql[i:])
			if !ok {
				return nil, fmt.Errorf("no end of %s", sql[i:])
			}
			kind := byte('q')
			if c == '\'' {
				kind = 's'
			}
			found = append(found, token{kind: kind, text: text, name: text})
			i += n
		case c == '?':
			found = append(found, token{kind: 'p'})
			i++
		case c == '$' || isDigit(c):
			n := span(sql[i+1:], isDigit) + 1
			kind, text := byte('n'), sql[i:i+n]
			if c == '$' {
				kind, text = 'p', text[1:]
			}
			found = append(found, token{kind: kind, text: text})
			i += n
		case isLetter(c):
			n := span(sql[i:], func(c byte) bool { return isLetter(c) || isDigit(c) })
			found = append(found, token{kind: 'w', text: strings.ToUpper(sql[i : i+n]), name: sql[i : i+n]})
			i += n
		default:
			sign := string(c)
			for _, s := range signs {
				if strings.HasPrefix(sql[i:], s) {
					sign = s
					break
				}
			}
			found = append(found, token{kind: 'o', text: sign})
			i += len(sign)
		}
	}
	return found, nil
}

// quoted reads a quoted text, in which a quote is doubled.
func quoted(sql string) (text string, n int, ok bool) {
	q := sql[:1]
	for n = 1; n < len(sql); n++ {
		if sql[n] != q[0] {
			continue
		}
		if n+1 == len(sql) || sql[n+1] != q[0] {
			return strings.ReplaceAll(sql[1:n], q+q, q), n + 1, true
		}
		n++
	}
	return "", 0, false
}

func span(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '@'
}
