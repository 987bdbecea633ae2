package dbguard

import (
	"fmt"
	"slices"
	"strings"
)

// admissible refuses SQL that would end the transaction it runs in, or change how the
// later ones of its session begin. It looks at the words of each statement, past
// comments and strings.
func (d dialect) admissible(statements []statement) error {
	for _, st := range statements {
		if st.controls() || d.name == "mysql" && st.setsIsolation() {
			return fmt.Errorf("%w: %s", ErrTxControl, strings.Join(st.words()[:min(4, len(st.words()))], " "))
		}
	}
	return nil
}

// setsIsolation reports whether a statement of MySQL sets the isolation level of its
// session. Other sessions may be given any.
func (st statement) setsIsolation() bool {
	return st.words()[0] == "SET" && slices.ContainsFunc(st, token.isIsolation) && st.index("GLOBAL") != 1 && st.index("@@GLOBAL") != 1
}

// isIsolation: a variable's name may be quoted, too.
func (t token) isIsolation() bool {
	switch strings.ToUpper(strings.TrimPrefix(t.text, "@@")) {
	case "ISOLATION", "TX_ISOLATION", "TRANSACTION_ISOLATION", "INNODB_SNAPSHOT_ISOLATION":
		return true
	}
	return false
}

// statements splits query into the statements that have any words.
func (d dialect) statements(query string) (all []statement) {
	s := scanner{src: query, backslash: d.name == "mysql"}
	for {
		st := s.statement()
		if len(st.words()) == 0 {
			return all
		}
		all = append(all, st)
	}
}

// controls reports whether a statement begins, ends or implicitly commits a
// transaction.
func (st statement) controls() bool {
	words := st.words()
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
		return slices.ContainsFunc(st, token.setsAutocommit) || len(rest) > 0 && rest[0] == "PASSWORD"
	case "PREPARE":
		return slices.Contains(rest, "TRANSACTION")
	case "LOAD":
		return slices.Contains(rest, "INDEX")
	}
	return false
}

// A token is a word of SQL in upper case, or a quoted name or string.
type token struct {
	text   string
	quoted bool
	dot    bool // a dot follows: a table's schema
	call   bool // a parenthesis follows
}

// statement is the beginning of an SQL statement.
type statement []token

// modifies reports whether a word begins a statement that modifies rows.
func modifies(word string) bool {
	switch word {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE":
		return true
	}
	return false
}

// setsAutocommit: a variable's name may be quoted, too.
func (t token) setsAutocommit() bool {
	return strings.EqualFold(t.text, "AUTOCOMMIT") || t.text == "@@AUTOCOMMIT"
}

// words returns what is not quoted.
func (st statement) words() (words []string) {
	for _, t := range st {
		if !t.quoted {
			words = append(words, t.text)
		}
	}
	return words
}

// scanner splits SQL into statements and statements into tokens. It knows
// quotes and comments, and reads MySQL's executable comments as SQL.
type scanner struct {
	src       string
	pos       int
	backslash bool // escapes inside strings
}

// maxWords is how many words of a statement are kept, and those behind that may
// tell what it does.
const maxWords = 64

func telling(word string) bool {
	return modifies(word) || token{text: word}.setsAutocommit() || token{text: word}.isIsolation()
}

// statement returns the first tokens of the next statement that has any words.
func (s *scanner) statement() (st statement) {
	words := 0
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ';':
			s.pos++
			if words > 0 {
				return st
			}
			st = nil
		case c == '\'' || c == '"' || c == '`':
			if name := s.quoted(c); c != '\'' && (words < maxWords || s.atCall()) {
				st = append(st, token{text: name, quoted: true, call: s.atCall()})
			}
		case s.skipComment():
		case isWordByte(c):
			word := token{text: strings.ToUpper(s.word())}
			word.call = s.atCall()
			if words < maxWords || telling(word.text) || word.callsUnknown() {
				st = append(st, word)
				words++
			}
		default:
			if c == '.' && len(st) > 0 {
				st[len(st)-1].dot = true
			}
			s.pos++
		}
	}
	return st
}

// atCall reports whether a parenthesis is next.
func (s *scanner) atCall() bool {
	return strings.HasPrefix(strings.TrimLeft(s.src[s.pos:], " \t\r\n"), "(")
}

func (s *scanner) word() string {
	start := s.pos
	for s.pos < len(s.src) && isWordByte(s.src[s.pos]) {
		s.pos++
	}
	return s.src[start:s.pos]
}

// quoted skips a string or a quoted name, and returns what is in it.
func (s *scanner) quoted(quote byte) string {
	start := s.pos + 1
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			if s.backslash && quote != '`' {
				s.pos++
			}
		case quote:
			s.pos++ // a doubled quote opens the next string at once: as good
			return s.src[start : s.pos-1]
		}
	}
	return ""
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
