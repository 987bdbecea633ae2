package sqltext

import (
	"slices"
	"strings"
)

// Split splits query into the statements that have any words. backslash says that a
// backslash escapes inside strings. The caller must not alter what it returns.
func Split(query string, backslash bool) []Statement {
	return known.statements(text{query, backslash})
}

func split(t text) (all []Statement) {
	s := scanner{src: t.query, backslash: t.backslash}
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

// withoutSettings returns what MariaDB executes: SET STATEMENT ... FOR puts settings
// before any statement.
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
	call   bool // a parenthesis follows
}

// Words returns what is not quoted.
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
