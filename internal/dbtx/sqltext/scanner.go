package sqltext

import "strings"

// scanner splits SQL into statements and statements into tokens. It knows the
// quotes and comments of a grammar, and reads MySQL's executable comments as SQL.
type scanner struct {
	src     string
	pos     int
	grammar Grammar
}

// maxWords is how many words of a statement are kept. Later words are kept only if they
// decide what it may do.
const maxWords = 64

// decides reports whether a word decides what its statement may do.
func decides(word string) bool {
	return modifies(word) || locksOrStores(word) || isOfUpsert(word) || token{text: word}.setsAutocommit() || token{text: word}.isIsolation() ||
		token{text: word}.isOfLater() || token{text: word}.isMode()
}

// statement returns the first tokens of the next statement that has any words.
func (s *scanner) statement() (st []token) {
	words := 0
	before := "" // the word or name before
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ';':
			s.pos++
			if words > 0 {
				return st
			}
			st = nil
		case c == '\'' || c == '"' || c == '`':
			name := s.quoted(c)
			call := s.atCall() && !namesTable(before)
			if c != '\'' && (words < maxWords || call) {
				st = append(st, token{text: name, quoted: true, call: call})
			}
			before = ""
		case s.skipComment(), s.skipDollars():
		case isWordByte(c):
			cast := strings.HasSuffix(s.src[:s.pos], "::")
			owned := before != "PG_CATALOG" && strings.HasSuffix(strings.TrimRight(s.src[:s.pos], " \t\r\n"), ".")
			word := token{text: strings.ToUpper(s.word()), owned: owned}
			word.call = s.atCall() && !cast && !namesTable(before)
			before = word.text
			if words < maxWords || decides(word.text) || word.callsUnknown() {
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

// namesTable reports whether a word is followed by the name of a table or a type, with
// its columns or its length in parentheses, and not by a function.
func namesTable(word string) bool {
	return word == "AS" || word == "WITH" || word == "RECURSIVE"
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

// quoted skips a string or a quoted name, and returns its content.
func (s *scanner) quoted(quote byte) string {
	start := s.pos + 1
	escapes := s.grammar.escapes(quote) || quote == '\'' && s.behindE()
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			if escapes {
				s.pos++
			}
		case quote:
			if escapes && strings.HasPrefix(s.src[s.pos+1:], string(quote)) {
				s.pos++ // a doubled quote
				continue
			}
			s.pos++ // a doubled quote opens the next string at once: as good
			return s.src[start : s.pos-1]
		}
	}
	s.pos = len(s.src) // not past an escape that ends the text
	return ""
}

// behindE reports whether a string of PostgreSQL has escapes: E'x'.
func (s *scanner) behindE() bool {
	if s.grammar != Postgres || s.pos == 0 || s.src[s.pos-1]|0x20 != 'e' {
		return false
	}
	return s.pos == 1 || !isWordByte(s.src[s.pos-2])
}

// skipDollars skips a string of PostgreSQL between dollars: $$x$$ or $tag$x$tag$.
func (s *scanner) skipDollars() bool {
	if s.grammar != Postgres || s.src[s.pos] != '$' {
		return false
	}
	end := s.pos + 1
	for end < len(s.src) && s.src[end] != '$' && isWordByte(s.src[end]) {
		end++
	}
	if end == len(s.src) || s.src[end] != '$' || '0' <= s.src[s.pos+1] && s.src[s.pos+1] <= '9' {
		return false // a parameter
	}
	tag := s.src[s.pos : end+1]
	s.past(tag, len(tag))
	return true
}

// skipComment skips a comment that begins here. Of an executable one, /*! ...
// */, it skips only the mark: the server reads the rest.
func (s *scanner) skipComment() bool {
	rest := s.src[s.pos:]
	mysql := s.grammar.isMySQL()
	switch {
	case mysql && (strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")):
		s.pos += strings.IndexByte(rest, '!') + 1
		for s.pos < len(s.src) && s.src[s.pos] >= '0' && s.src[s.pos] <= '9' {
			s.pos++
		}
	case strings.HasPrefix(rest, "/*") && s.grammar == Postgres:
		s.pastNested()
	case strings.HasPrefix(rest, "/*"):
		s.past("*/", 2)
	case mysql && rest[0] == '#', rest == "--", strings.HasPrefix(rest, "--") && (!mysql || rest[2] <= ' '):
		s.past("\n", 1)
	default:
		return false
	}
	return true
}

// pastNested moves past a comment that may have others in it.
func (s *scanner) pastNested() {
	for depth := 0; s.pos < len(s.src); {
		switch rest := s.src[s.pos:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			s.pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			s.pos += 2
			if depth == 0 {
				return
			}
		default:
			s.pos++
		}
	}
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
