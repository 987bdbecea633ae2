package sqltext

import (
	"slices"
	"strings"
)

// A Grammar is how a server reads quotes and comments.
type Grammar int

// The grammars.
const (
	Standard   Grammar = iota // of SQLite: a backslash escapes nothing
	Postgres                  // E'x' with escapes, $$x$$, comments in comments
	MySQL                     // a backslash escapes in 'x' and "x"; comments that are executed
	MySQLANSI                 // with sql_mode ANSI_QUOTES: not in "x", which is a name
	MySQLPlain                // with sql_mode NO_BACKSLASH_ESCAPES: nowhere
)

func (g Grammar) isMySQL() bool { return g >= MySQL }

// escapes reports whether a backslash escapes between such quotes.
func (g Grammar) escapes(quote byte) bool {
	return quote == '\'' && (g == MySQL || g == MySQLANSI) || quote == '"' && g == MySQL
}

// Split splits query into the statements that have any words. The caller must not alter
// the result.
func Split(query string, g Grammar) []Statement { return known.statements(text{query, g}) }

func split(t text) (all []Statement) {
	s := scanner{src: t.query, grammar: t.grammar}
	for {
		st := newStatement(s.statement())
		if len(st.words) == 0 {
			return all
		}
		all = append(all, st)
	}
}

// A Statement is the beginning of an SQL statement.
type Statement struct {
	tokens []token
	words  []string // those that are not quoted
}

func newStatement(tokens []token) Statement {
	st := Statement{tokens: withoutSettings(tokens)}
	for _, t := range st.tokens {
		if !t.quoted {
			st.words = append(st.words, t.text)
		}
	}
	return st
}

// withoutSettings returns the statement after MariaDB's SET STATEMENT ... FOR, which
// puts settings before any statement.
func withoutSettings(tokens []token) []token {
	if len(tokens) < 2 || tokens[0].text != "SET" || tokens[1].text != "STATEMENT" {
		return tokens
	}
	i := slices.IndexFunc(tokens, func(t token) bool { return !t.quoted && t.text == "FOR" })
	if i < 0 || i == len(tokens)-1 {
		return tokens
	}
	return tokens[i+1:]
}

// A token is a word of SQL in upper case, or a quoted name or string.
type token struct {
	text   string
	quoted bool
	dot    bool // a dot follows: a table's schema
	owned  bool // a dot comes before it: of a schema or a table that is not PostgreSQL's own
	call   bool // a parenthesis follows
}

// Words returns the unquoted words.
func (st Statement) Words() []string { return st.words }

// Last returns the last word or name of the statement.
func (st Statement) Last() string { return st.tokens[len(st.tokens)-1].text }

// index returns the position of the first such word, or -1.
func (st Statement) index(word string) int {
	return slices.IndexFunc(st.tokens, func(t token) bool { return !t.quoted && t.text == word })
}

// after returns the table named behind a word, in lower case.
func (st Statement) after(word string) string {
	i := st.index(word) + 1
	if i == 0 || i >= len(st.tokens) {
		return ""
	}
	name := st.tokens[i].text
	if st.tokens[i].dot && i+1 < len(st.tokens) {
		name += "." + st.tokens[i+1].text
	}
	return strings.ToLower(name)
}
