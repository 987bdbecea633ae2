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

// isIsolation: a variable's name may be quoted, too.
func (t token) isIsolation() bool {
	switch strings.ToUpper(strings.TrimPrefix(t.text, "@@")) {
	case "ISOLATION", "TX_ISOLATION", "TRANSACTION_ISOLATION", "INNODB_SNAPSHOT_ISOLATION":
		return true
	}
	return false
}
