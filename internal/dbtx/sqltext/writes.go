package sqltext

import (
	"slices"
	"strings"
)

// Writes reports whether a statement writes, and to which table. "" means that the table
// is not known.
func (st Statement) Writes() (table string, ok bool) {
	words := st.Words()
	switch words[0] {
	case "INSERT", "REPLACE":
		return st.after("INTO"), true
	case "UPDATE":
		if set := st.index("SET"); set == 2 || set == 3 && st.tokens[1].dot {
			return st.after("UPDATE"), true
		}
		return "", true
	case "DELETE":
		if words[1:] != nil && st.index("FROM") == 1 && st.index("USING") < 0 && st.index("JOIN") < 0 {
			return st.after("FROM"), true
		}
		return "", true
	case "LOAD", "CALL", "DO", "EXECUTE", "MERGE", "COPY", "HANDLER":
		return "", true
	case "WITH", "EXPLAIN":
		return "", slices.ContainsFunc(words, modifies)
	}
	return "", false
}

// MayDelete reports whether a statement that writes may delete rows.
func (st Statement) MayDelete() bool {
	switch st.Words()[0] {
	case "INSERT", "UPDATE":
		return st.index("OR") == 1 // SQLite's OR REPLACE deletes what is in the way
	}
	return true
}

// OnlyReads reports whether a statement of MySQL or MariaDB certainly writes nothing, and locks no row
// where reads do not.
func (st Statement) OnlyReads() bool {
	switch words := st.Words(); words[0] {
	case "SELECT":
		return !st.Calls() && !slices.ContainsFunc(words, locksOrStores)
	case "SHOW":
		return true
	}
	return false
}

// locksOrStores reports whether a word may be of FOR UPDATE, LOCK IN SHARE MODE, INTO a file or the next
// value of a sequence.
func locksOrStores(word string) bool {
	switch word {
	case "FOR", "LOCK", "INTO", "NEXTVAL":
		return true
	}
	return false
}

// modifies reports whether a word begins a statement that modifies rows.
func modifies(word string) bool {
	switch word {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE":
		return true
	}
	return false
}

// Updates reports whether a statement updates rows, or may, as an upsert does.
func (st Statement) Updates() bool {
	for i, word := range st.words {
		if word == "UPDATE" && !st.locks(i) {
			return true
		}
	}
	return false
}

// locks reports whether the word UPDATE is that of FOR UPDATE, or of FOR NO KEY UPDATE.
func (st Statement) locks(i int) bool {
	before := st.words[:i]
	if n := len(before); n > 2 && before[n-1] == "KEY" && before[n-2] == "NO" {
		before = before[:n-2]
	}
	return len(before) > 0 && before[len(before)-1] == "FOR"
}

// ReturnsFound reports whether an INSERT of MariaDB returns the row that it finds in place of its
// own as it does its own: the number of rows does not tell which it is.
func (st Statement) ReturnsFound() bool {
	return st.index("DUPLICATE") > 0 && st.index("RETURNING") > 0
}

// isOfUpsert reports whether a word may be of ON DUPLICATE KEY UPDATE, or be the RETURNING behind it.
func isOfUpsert(word string) bool { return word == "DUPLICATE" || word == "RETURNING" }

// OnlyInserts reports whether a statement inserts rows by itself, and updates none.
func (st Statement) OnlyInserts() bool {
	switch st.Words()[0] {
	case "INSERT", "REPLACE", "COPY", "WITH", "MERGE", "LOAD":
		return !st.Updates()
	}
	return false
}

// SetsPath reports whether a statement of PostgreSQL may change in which schemas a table is
// looked for that is named without one: the search path may depend on the user.
func (st Statement) SetsPath() bool {
	switch st.Words()[0] {
	case "SET":
		return slices.ContainsFunc(st.tokens, token.isOfPath)
	case "SELECT":
		return st.index("SET_CONFIG") > 0
	}
	return false
}

// isOfPath: a variable's name may be quoted, too.
func (t token) isOfPath() bool {
	switch strings.ToUpper(t.text) {
	case "SEARCH_PATH", "SCHEMA", "ROLE", "AUTHORIZATION", "SESSION_AUTHORIZATION":
		return true
	}
	return false
}

// ChangesVisibility reports whether a statement of PostgreSQL may change which rows the
// transaction sees: by a search path, a role, or a variable of row-level security.
func (st Statement) ChangesVisibility() bool {
	if st.Words()[0] == "SET" {
		return true
	}
	return st.Words()[0] == "SELECT" && st.index("SET_CONFIG") > 0 && !st.Calls()
}
