package sqltext

import (
	"slices"
	"strings"
)

// Controls reports whether a statement begins, ends or implicitly commits a
// transaction.
func (st Statement) Controls() bool {
	words := st.Words()
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
		return slices.ContainsFunc(st.tokens, token.setsAutocommit) || len(rest) > 0 && rest[0] == "PASSWORD"
	case "PREPARE":
		return slices.Contains(rest, "TRANSACTION")
	case "LOAD":
		return slices.Contains(rest, "INDEX")
	}
	return false
}

// setsAutocommit: a variable's name may be quoted, too.
func (t token) setsAutocommit() bool {
	return strings.EqualFold(t.text, "AUTOCOMMIT") || t.text == "@@AUTOCOMMIT"
}

// SetsIsolation reports whether a statement of MySQL sets the isolation level of its
// session. Other sessions may be given any.
func (st Statement) SetsIsolation() bool {
	return st.Words()[0] == "SET" && slices.ContainsFunc(st.tokens, token.isIsolation) && st.index("GLOBAL") != 1 && st.index("@@GLOBAL") != 1
}

// SetsLater reports whether a statement of MySQL sets how the later transactions of its
// session begin or end: their database, their isolation level, whether they are read-only,
// and whether another one follows their COMMIT. Settings of other sessions do not count.
func (st Statement) SetsLater() bool {
	if st.SetsIsolation() || st.Words()[0] == "USE" {
		return true
	}
	if st.Words()[0] != "SET" || st.index("GLOBAL") == 1 || st.index("@@GLOBAL") == 1 {
		return false
	}
	kind := st.index("TRANSACTION")
	return (kind == 1 || kind == 2) && st.index("READ") == kind+1 || slices.ContainsFunc(st.tokens, token.isOfLater)
}

// isOfLater: a variable's name may be quoted, too.
func (t token) isOfLater() bool {
	switch strings.ToUpper(strings.TrimPrefix(t.text, "@@")) {
	case "COMPLETION_TYPE", "TX_READ_ONLY", "TRANSACTION_READ_ONLY":
		return true
	}
	return false
}

// SetsDefaults reports whether a statement of PostgreSQL sets how the later transactions of
// its session begin.
func (st Statement) SetsDefaults() bool {
	if st.Words()[0] != "SET" || st.index("LOCAL") == 1 {
		return false
	}
	return st.index("CHARACTERISTICS") == 2 || slices.ContainsFunc(st.tokens, token.isDefault)
}

func (t token) isDefault() bool {
	return strings.HasPrefix(strings.ToUpper(t.text), "DEFAULT_TRANSACTION_")
}

// KeepsPath reports whether a SET of PostgreSQL sets in which schemas the later transactions of its
// session look for a table, or as which user, and not only this one.
func (st Statement) KeepsPath() bool {
	if st.Words()[0] != "SET" {
		return false
	}
	name := 1
	for name < len(st.tokens)-1 && st.tokens[name].text == "SESSION" && !st.tokens[name].dot {
		name++
	}
	return name < len(st.tokens) && !st.tokens[name].dot && st.tokens[name].isOfPath()
}

// SetsMode reports whether a statement of MySQL sets the sql_mode of its session, which
// decides how later statements are parsed.
func (st Statement) SetsMode() bool {
	return st.Words()[0] == "SET" && slices.ContainsFunc(st.tokens, token.isMode)
}

// isMode: a variable's name may be quoted, too.
func (t token) isMode() bool { return strings.EqualFold(strings.TrimPrefix(t.text, "@@"), "SQL_MODE") }

// isIsolation: a variable's name may be quoted, too.
func (t token) isIsolation() bool {
	switch strings.ToUpper(strings.TrimPrefix(t.text, "@@")) {
	case "ISOLATION", "TX_ISOLATION", "TRANSACTION_ISOLATION", "INNODB_SNAPSHOT_ISOLATION":
		return true
	}
	return false
}
