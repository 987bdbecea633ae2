package dbguard

import (
	"fmt"
	"slices"
	"strings"
)

// admissible refuses SQL that would end the transaction it runs in. It looks at
// the words of each statement in query, past comments and strings.
func (d dialect) admissible(query string) error {
	s := scanner{src: query, backslash: d.name == "mysql"}
	for {
		words := s.statement()
		if len(words) == 0 {
			return nil
		}
		if controls(words) {
			return fmt.Errorf("%w: %s", ErrTxControl, words[0])
		}
	}
}

// undoes reports whether query is a ROLLBACK TO a savepoint.
func undoes(query string) bool {
	s := scanner{src: query}
	words := s.statement()
	return len(words) > 0 && words[0] == "ROLLBACK"
}

// controls reports whether a statement with these upper-case words begins, ends
// or implicitly commits a transaction.
func controls(words []string) bool {
	switch rest := words[1:]; words[0] {
	case "BEGIN", "START", "COMMIT", "END", "ABORT", "XA",
		"ALTER", "TRUNCATE", "RENAME", "GRANT", "REVOKE",
		"ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CACHE", "FLUSH", "RESET",
		"INSTALL", "UNINSTALL", "LOCK", "UNLOCK", "ATTACH", "DETACH", "VACUUM":
		return true
	case "CREATE", "DROP": // a temporary table commits nothing
		if len(rest) > 2 && rest[0] == "OR" && rest[1] == "REPLACE" {
			rest = rest[2:]
		}
		return len(rest) == 0 || rest[0] != "TEMPORARY" && rest[0] != "TEMP"
	case "ROLLBACK":
		return !slices.Contains(rest, "TO")
	case "SET":
		return slices.Contains(rest, "AUTOCOMMIT") || slices.Contains(rest, "@@AUTOCOMMIT") ||
			len(rest) > 0 && rest[0] == "PASSWORD"
	case "PREPARE":
		return slices.Contains(rest, "TRANSACTION")
	case "LOAD":
		return slices.Contains(rest, "INDEX")
	}
	return false
}

// scanner splits SQL into statements and statements into words. It knows
// quotes and comments, and reads MySQL's executable comments as SQL.
type scanner struct {
	src       string
	pos       int
	backslash bool // escapes inside strings
}

const maxWords = 64 // of a statement; what controls asks for stands before

// statement returns the first words of the next statement that has any, in
// upper case.
func (s *scanner) statement() (words []string) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ';':
			s.pos++
			if len(words) > 0 {
				return words
			}
		case c == '\'' || c == '"' || c == '`':
			s.quoted(c)
		case s.skipComment():
		case isWordByte(c):
			word := s.word()
			if len(words) < maxWords {
				words = append(words, strings.ToUpper(word))
			}
		default:
			s.pos++
		}
	}
	return words
}

func (s *scanner) word() string {
	start := s.pos
	for s.pos < len(s.src) && isWordByte(s.src[s.pos]) {
		s.pos++
	}
	return s.src[start:s.pos]
}

// quoted skips a string or a quoted name.
func (s *scanner) quoted(quote byte) {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			if s.backslash && quote != '`' {
				s.pos++
			}
		case quote:
			s.pos++ // a doubled quote opens the next string at once: as good
			return
		}
	}
}

// skipComment skips a comment that begins here. Of an executable one, /*! ...
// */, it skips only the mark: the server reads the rest.
func (s *scanner) skipComment() bool {
	rest := s.src[s.pos:]
	switch {
	case strings.HasPrefix(rest, "/*!"), strings.HasPrefix(rest, "/*M!"):
		s.pos += strings.IndexByte(rest, '!') + 1
		for s.pos < len(s.src) && s.src[s.pos] >= '0' && s.src[s.pos] <= '9' {
			s.pos++
		}
	case strings.HasPrefix(rest, "/*"):
		s.past("*/", 2)
	case rest[0] == '#', rest == "--", len(rest) > 2 && rest[:2] == "--" && rest[2] <= ' ':
		s.past("\n", 1)
	default:
		return false
	}
	return true
}

// past moves past the next mark that begins at least n bytes ahead, or to the
// end.
func (s *scanner) past(mark string, n int) {
	i := strings.Index(s.src[s.pos+n:], mark)
	if i < 0 {
		s.pos = len(s.src)
		return
	}
	s.pos += n + i + len(mark)
}

func isWordByte(c byte) bool {
	return c == '_' || c == '@' || c == '$' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
