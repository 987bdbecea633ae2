package sqltext

import (
	"slices"
	"strings"
)

// Split splits query into the statements that have any words. backslash says that a
// backslash escapes inside strings.
func Split(query string, backslash bool) (all []Statement) {
	s := scanner{src: query, backslash: backslash}
	for {
		st := s.statement()
		if len(st.Words()) == 0 {
			return all
		}
		all = append(all, st)
	}
}

// A Statement is the beginning of an SQL statement.
type Statement []token

// A token is a word of SQL in upper case, or a quoted name or string.
type token struct {
	text   string
	quoted bool
	dot    bool // a dot follows: a table's schema
	call   bool // a parenthesis follows
}

// Words returns what is not quoted.
func (st Statement) Words() (words []string) {
	for _, t := range st {
		if !t.quoted {
			words = append(words, t.text)
		}
	}
	return words
}

// Last returns the last word or name of the statement.
func (st Statement) Last() string { return st[len(st)-1].text }

// index returns the position of the first such word, or -1.
func (st Statement) index(word string) int {
	return slices.IndexFunc(st, func(t token) bool { return !t.quoted && t.text == word })
}

// after returns the table named behind a word, in lower case.
func (st Statement) after(word string) string {
	i := st.index(word) + 1
	if i == 0 || i >= len(st) {
		return ""
	}
	name := st[i].text
	if st[i].dot && i+1 < len(st) {
		name += "." + st[i+1].text
	}
	return strings.ToLower(name)
}
